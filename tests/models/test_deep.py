"""The recipes of deep models: what tree they make of data, and what they refuse."""

import numpy as np
import pytest

import mrgp
from mrgp.gp import Exact, Markov
from mrgp.models.growing import Growth


def observations(name, task="a", width=0.0, count=6):
    lower = np.linspace(0.0, 5.0, count)
    y = np.sin(lower)
    return mrgp.Observations(mrgp.intervals(lower, lower + width), y, task=task, name=name)


ONE = mrgp.Dataset(
    [observations("coarse", width=2.0), observations("fine"), observations("mid", width=1.0)]
)
TWO = mrgp.Dataset(
    [
        observations("sites", "pm25"),
        observations("model", "pm25", 1.0),
        observations("model", "pm10", 1.0),
        observations("sites", "pm10"),
    ]
)


ALONG = mrgp.Matern32(dims="east") * mrgp.Matern32(dims="time")


def network(hours=150):
    """Return enough hours of three sites that they are solved along time."""
    x = [[float(p), float(t)] for t in range(hours) for p in range(3)]
    support = mrgp.points(x, inputs=("east", "time"))
    return mrgp.Dataset([mrgp.Observations(support, np.sin(np.arange(len(x))), name="sites")])


@pytest.mark.parametrize(("hours", "solver"), [(150, Markov), (20, Exact)])
def test_auto_solves_the_base_of_a_network_along_time_where_that_is_cheaper(hours, solver):
    data, recipe = network(hours), mrgp.MRDGP(kernel_base=ALONG)
    assert recipe.method == "auto"
    plan = recipe.plan(data)
    wanted = Growth.begin(recipe, plan, data).wanted(plan.branches[0])
    built = wanted.recipe.build(wanted.data)
    assert isinstance(built.solver, solver)


def test_by_default_finer_supports_are_trusted_first():
    plan = mrgp.MRDGP().plan(ONE)
    assert [node.name for node in plan.branches] == [
        "base[fine]",
        "base[mid]",
        "base[coarse]",
        "expert[mid]",
        "expert[coarse]",
    ]
    assert [label for label, _ in plan.blends[0].experts] == ["fine", "mid", "coarse"]


def test_an_order_puts_the_target_first():
    plan = mrgp.MRDGP(order=["mid", "coarse", "fine"]).plan(ONE)
    assert plan.blends[0].target == "mid"
    assert [label for label, _ in plan.blends[0].experts] == ["mid", "coarse", "fine"]
    assert all(node.process == ("mid", "a") for node in plan.branches if node.parent)


def test_other_tasks_are_mixed_first_and_mapped_to_the_target():
    plan = mrgp.MRDGP(target=("sites", "pm25")).plan(TWO)
    assert [node.name for node in plan.branches] == [
        "base[sites, pm10]",
        "base[model, pm10]",
        "expert[model, pm10]",
        "base[sites, pm25]",
        "base[model, pm25]",
        "expert[model, pm25]",
        "expert[pm10, pm25]",
    ]
    across = plan.branches[-1]
    assert (across.parent, across.process) == ("mixture[pm10]", ("sites", "pm25"))
    assert [blend.task for blend in plan.blends] == ["pm10", "pm25"]


def test_a_task_named_like_a_source_has_a_node_of_its_own():
    data = mrgp.Dataset(
        [observations("fine"), observations("b", width=1.0), observations("fine", "b")]
    )
    plan = mrgp.MRDGP(target=("fine", "a")).plan(data)
    names = [node.name for node in plan.branches]
    assert len(set(names)) == len(names)
    assert [label for label, _ in plan.blends[-1].experts] == ["fine", "b", "b (task)"]


def test_an_order_for_each_task_names_the_target():
    order = {"pm10": ["model", "sites"], "pm25": ["sites", "model"]}
    plan = mrgp.MRDGP(order=order).plan(TWO)
    assert plan.blends[-1].task == "pm10"
    assert plan.blends[-1].target == "model"


def test_a_chain_goes_from_the_first_to_the_last():
    plan = mrgp.Cascade(["coarse", "mid", "fine"]).plan(ONE)
    assert [(n.name, n.parent) for n in plan.branches] == [
        ("base[coarse]", None),
        ("expert[mid]", "base[coarse]"),
        ("expert[fine]", "expert[mid]"),
    ]
    assert plan.blends[0].experts == (("fine", "expert[fine]"),)


def test_a_chain_says_what_it_leaves_out():
    with pytest.warns(UserWarning, match=r"\[\('mid', 'a'\)\] are not in the chain"):
        kept = mrgp.Cascade(["coarse", "fine"]).view(ONE)
    assert kept.sources == ("coarse", "fine")


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mrgp.MRDGP(mixing="best"), "mixing= is one of .* or a function of the inputs"),
        (lambda: mrgp.MRDGP(variance="sum"), r"variance= is one of \('mixture', 'independent'\)"),
        (lambda: mrgp.MRDGP(schedule="both"), r"schedule= is one of \('cut', 'joint'\)"),
        (lambda: mrgp.MRDGP(schedule=["experts"]), "begins with 'bases' and 'experts'"),
        (lambda: mrgp.MRDGP(order="fine"), "order= lists sources, target first"),
        (lambda: mrgp.MRDGP(order={"a": []}), "order= lists sources, target first"),
        (lambda: mrgp.MRDGP(target=5), "target= is a source, or a pair"),
        (lambda: mrgp.MRDGP(schedule=None), "begins with 'bases' and 'experts'"),
        (
            lambda: mrgp.MRDGP(method="markov", schedule="joint"),
            'MRDGP: the stage .joint. trains the inducing inputs .* and method="markov" has none;'
            ' take schedule="cut", or method="exact" or "collapsed"',
        ),
        (
            lambda: mrgp.Cascade(["a"], method="markov", schedule=["bases", "experts", "joint"]),
            "Cascade: the stage 'joint'",
        ),
        (
            lambda: mrgp.fit(mrgp.MRDGP(kernel_base=ALONG, schedule="joint"), network()),
            r'method="auto", which solves base\[sites\] along time, has none',
        ),
        (lambda: mrgp.MRDGP(samples=0), "samples= must be a whole number of paths, at least 1"),
        (lambda: mrgp.MRDGP(method="best"), "MRDGP: method= is one of"),
        (lambda: mrgp.MRDGP(mean_deep="zero"), r"mean_deep= is one of \('identity', 'linear'\)"),
        (lambda: mrgp.MRDGP(deep_inputs="value"), 'an input named "value".*Rename the input'),
        (lambda: mrgp.MRDGP(kernel_deep="RBF"), "kernel_deep= takes a kernel such as mrgp.RBF"),
        (lambda: mrgp.MRDGP(kernel_base={"sat": 1}), "kernel_base= takes a kernel"),
        (lambda: mrgp.MRDGP(inducing=-1), "at least 1; got -1"),
        (lambda: mrgp.MRDGP(quadrature=5), "quadrature= takes a rule"),
        (lambda: mrgp.Cascade(), "chain= lists sources, coarsest first and target last"),
        (lambda: mrgp.Cascade("sat"), "chain= lists sources"),
        (lambda: mrgp.MRDGP(target="sat").plan(ONE), "target='sat' is no source. The processes"),
        (lambda: mrgp.MRDGP(target="sites").plan(TWO), "several tasks; give a pair"),
        (lambda: mrgp.MRDGP(order=["fine", "mid"]).plan(ONE), "must list each source of task 'a'"),
        (
            lambda: mrgp.MRDGP("mid", order=["fine", "mid", "coarse"]).plan(ONE),
            "starts with the target, 'mid'.*Move it to the front",
        ),
        (lambda: mrgp.MRDGP("fine", order={"b": ["fine"]}).plan(ONE), "'b', which is no task"),
        (lambda: mrgp.MRDGP(kernel_base={"sat": mrgp.RBF()}).plan(ONE), "'sat', which is none of"),
        (lambda: mrgp.MRDGP(kernel_deep={"fine": mrgp.RBF()}).plan(ONE), "'fine', which is none"),
        (lambda: mrgp.MRDGP(deep_inputs="lon").build(ONE), "no input is named 'lon'"),
        (
            lambda: mrgp.MRDGP(kernel_deep=mrgp.Linear(dims="x1")).build(ONE),
            "kernel_deep: maps have no input 'x1'; they see .*Name it in deep_inputs",
        ),
        (lambda: mrgp.Cascade(["sat", "fine"]).view(ONE), "'sat' is no source"),
        (lambda: mrgp.Cascade(["fine", "fine"]).view(ONE), "a source twice"),
    ],
)
def test_a_wrong_setting_is_refused_with_advice(make, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make()
