"""The model chosen for data, and the reasons given."""

import dataclasses

import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.data import stretch
from mrgp.datasets import biased, dependent
from mrgp.selection.overlap import meets
from mrgp.selection.trials import Held


def observed(x, y, name="sensors", task="u"):
    return mrgp.Observations(mrgp.points(x, inputs="x"), y, name=name, task=task)


def said(reasons, words):
    return any(words in reason for reason in reasons)


def draw(kernel, x, noise, seed):
    rng = np.random.default_rng(seed)
    distance = np.abs(x - x.T)
    covariance = {"rough": np.exp(-distance), "smooth": np.exp(-0.5 * distance**2)}[kernel]
    root = np.linalg.cholesky(covariance + 1e-8 * np.eye(len(x)))
    return root @ rng.normal(size=len(x)) + noise * rng.normal(size=len(x))


@pytest.mark.parametrize(
    ("kind", "kernel"), rest_thorough([("rough", mrgp.Matern12), ("smooth", mrgp.RBF)], 0)
)
def test_one_source_gets_one_field_as_rough_as_it_is(kind, kernel):
    x = np.linspace(0.0, 20.0, 250)[:, None]
    choice = mrgp.choose(mrgp.Dataset([observed(x, draw(kind, x, 0.02, 3))]))
    recipe, reasons = choice
    assert isinstance(recipe, mrgp.MRGP)
    assert isinstance(recipe.kernel, kernel)
    assert "There is one source, sensors, and one task, u." in reasons
    assert said(reasons, "log evidence with log prior")
    assert said(reasons, "Beside the best simple rule at the places of 250 values of sensors")
    assert choice.weights is None
    assert str(choice).startswith("MRGP:\n- ")


def test_a_few_values_get_the_usual_kernel():
    choice = mrgp.choose(mrgp.Dataset([observed([[0.0], [1.0], [2.0]], [1.0, 2.0, 0.0])]))
    assert choice.reasons[-1] == "Kernel: Matern-3/2."
    assert choice.recipe == mrgp.MRGP()


@pytest.mark.thorough
def test_sources_on_another_scale_get_a_scale_and_an_offset():
    recipe, reasons = mrgp.choose(biased(0).data)
    assert isinstance(recipe, mrgp.MRGP)
    assert (recipe.bias, recipe.target) == ("affine", "target")
    assert any("they are biased" in reason for reason in reasons)
    assert any("values lie where another source sees" in reason for reason in reasons)
    assert said(reasons, "no sign of more")


def test_a_biased_source_elsewhere_gets_a_line():
    x = np.linspace(0.0, 10.0, 60)[:, None]
    near = observed(x[:6], np.sin(x[:6, 0]), "few")
    rng = np.random.default_rng(0)
    far = observed(x, 3 * np.sin(x[:, 0]) + 20 + 0.05 * rng.normal(size=60), "biased")
    recipe, reasons = mrgp.choose(mrgp.Dataset([near, far]), target="few")
    assert isinstance(recipe, mrgp.MRGP)
    assert (recipe.bias, recipe.target) == ("affine", "few")
    assert said(reasons, "too few for a map: a scale and an offset")


@pytest.mark.thorough
def test_two_networks_of_points_see_the_same_places():
    x = np.linspace(0.0, 10.0, 40)[:, None]
    rng = np.random.default_rng(1)
    y = np.sin(x[:, 0])
    good = observed(x, y + 0.05 * rng.normal(size=40), "good")
    cheap = observed(x + 0.01, 20 + 2 * y + 0.05 * rng.normal(size=40), "cheap")
    recipe, reasons = mrgp.choose(mrgp.Dataset([good, cheap]), target="good")
    assert "40 of the target's 40 values lie where another source sees." in reasons
    # Their bias is a line, and a line is chosen.
    assert isinstance(recipe, mrgp.MRGP)
    assert recipe.bias == "affine"
    assert said(reasons, "no sign of more")


@pytest.mark.thorough
def test_a_bias_that_bends_gets_a_map():
    x = np.linspace(0.0, 12.0, 60)[:, None]
    rng = np.random.default_rng(2)
    y = 2 * np.sin(x[:, 0]) + np.cos(2.7 * x[:, 0])
    good = observed(x, y + 0.05 * rng.normal(size=60), "good")
    drifting = y * (0.3 + 0.15 * x[:, 0]) + 5 + 0.05 * rng.normal(size=60)
    recipe, reasons = mrgp.choose(mrgp.Dataset([good, observed(x, drifting, "drifting")]))
    assert isinstance(recipe, mrgp.MRDGP)
    assert any("more than a scale and an offset" in reason for reason in reasons)
    assert said(reasons, "a map that changes over the inputs predicts it best")
    assert recipe.deep_inputs == ("x",)


def test_of_sources_that_never_meet_nothing_is_claimed():
    x = np.linspace(0.0, 10.0, 30)[:, None]
    apart = [observed(x + 100 * i, np.sin(x[:, 0]) + 5 * i, f"s{i}") for i in range(2)]
    choice = mrgp.choose(mrgp.Dataset(apart))
    assert isinstance(choice.recipe, mrgp.MRGP)
    assert said(choice.reasons, "Neither a bias nor shared errors can be told")


@pytest.mark.thorough
def test_a_coarse_target_is_seen_by_the_points_inside_it():
    x = np.linspace(0.05, 9.95, 50)[:, None]
    cells = mrgp.intervals(np.arange(10.0), np.arange(1.0, 11.0), inputs="x")
    coarse = mrgp.Observations(cells, np.sin(np.arange(0.5, 10.0)), name="cells", task="u")
    data = mrgp.Dataset([observed(x, np.sin(x[:, 0])), coarse])
    reasons = mrgp.choose(data, target="cells").reasons
    assert "10 of the target's 10 values lie where another source sees." in reasons


@pytest.mark.thorough
def test_sources_that_share_errors_are_weighted():
    choice = mrgp.choose(dependent(0, noise=0.5).data)
    assert isinstance(choice.recipe, mrgp.MRGP)
    assert choice.weights == "auto"
    assert said(choice.reasons, "fine and coarse: they share errors (correlation")
    assert said(choice.reasons, "Composite weights keep sources from counting")
    apart = mrgp.choose(dependent(0, noise=0.5, independent=True).data)
    assert apart.weights is None
    assert said(apart.reasons, "no sign that they share errors")


def test_several_tasks_get_latent_functions():
    x = np.linspace(0.0, 10.0, 40)[:, None]
    tasks = [observed(x, np.sin(x[:, 0]) * (i + 1), "s", task) for i, task in enumerate("ab")]
    recipe, reasons = mrgp.choose(mrgp.Dataset(tasks))
    assert isinstance(recipe, mrgp.MRGPRN)
    assert (recipe.latents, recipe.kernel_w) == (2, "constant")
    assert reasons[0] == "There are several tasks: a, to be predicted, and b."


def test_fit_auto_says_why_and_keeps_it(tmp_path):
    data = dependent(0, noise=0.5).data
    fit = mrgp.fit("auto", data, progress=None)
    assert fit.weights["fine", "y"] < 0.8
    assert "chosen: There are 2 sources of one task, y; the target is fine." in fit.summary()
    mrgp.save(fit, tmp_path / "fit.mrgp")
    assert mrgp.load(tmp_path / "fit.mrgp").reasons == fit.reasons
    with pytest.raises(TypeError, match="or \"auto\"; got 'best'"):
        mrgp.fit("best", data)
    with pytest.raises(TypeError, match="choose takes a Dataset; got list"):
        mrgp.choose([data])


def test_where_a_rule_is_better_it_says_so_first():
    rng = np.random.default_rng(4)
    noise = observed(rng.uniform(0.0, 10.0, (60, 1)), rng.normal(size=60))
    trial = Held.of(mrgp.Dataset([noise]), ("sensors", "u"), 0).trial(mrgp.MRGP())
    worse = dataclasses.replace(trial, simple={k: v / 2 for k, v in trial.model.items()})
    assert worse.behind
    assert worse.verdict.startswith("A simple rule is better at the places of 60 values of sensors")
    better = dataclasses.replace(trial, simple={k: 2 * v for k, v in trial.model.items()})
    assert not better.behind
    assert better.verdict.startswith("Beside the best simple rule")
    assert better.verdict.endswith("; rmse is 50 % lower and crps is 50 % lower.")
    mixed = dataclasses.replace(
        trial, simple={"rmse": trial.model["rmse"] / 1.1, "crps": trial.model["crps"]}
    )
    assert not mixed.behind
    assert mixed.verdict.endswith("; rmse is 10 % higher and crps is about the same.")
    few = mrgp.Dataset([noise[np.arange(8)]])
    assert Held.of(few, ("sensors", "u"), 0) is None


@pytest.mark.thorough
def test_places_that_repeat_in_time_make_a_network():
    rng = np.random.default_rng(5)
    places = rng.uniform(0.0, 10.0, (8, 2))
    x = np.array([[a, b, t] for t in range(24) for a, b in places])
    common = np.sin(x[:, 2] / 4)
    y = 5 + 2 * common + np.tile(rng.normal(size=8), 24) + 0.1 * rng.normal(size=len(x))
    sites = mrgp.points(x, inputs=("east", "north", "hour"))
    choice = mrgp.choose(mrgp.Dataset([mrgp.Observations(sites, y, name="sites")]))
    assert choice.recipe == mrgp.MRGP()
    assert said(choice.reasons, "Places repeat in time: a network")
    assert said(choice.reasons, "of sites that were held out")


def products(seed, shared=0.0):
    """Stations, and two gridded products that are off from place to place, partly alike."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 8.0, (70, 2))
    lower = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), -1).reshape(-1, 2)

    def truth(at):
        return 3 * np.sin(at[:, 0]) * np.cos(0.8 * at[:, 1])

    def off(at, turn):
        own = np.cos(1.1 * at[:, 0] + turn) + np.sin(0.9 * at[:, 1] - turn)
        return own + shared * np.cos(0.7 * at.sum(1))

    def product(name, turn):
        z = 2 + 0.8 * truth(lower + 0.5) + off(lower + 0.5, turn) + 0.05 * rng.normal(size=64)
        cells = mrgp.boxes(lower, lower + 1.0, inputs=("x", "y"))
        return mrgp.Observations(cells, z, task="u", name=name)

    y = truth(x) + 0.2 * rng.normal(size=70)
    seen = mrgp.Observations(mrgp.points(x, inputs=("x", "y")), y, task="u", name="sites")
    new = rng.uniform(0.0, 8.0, (200, 2))
    return mrgp.Dataset([seen, product("a", 0.3), product("b", 1.9)]), new, truth(new)


@pytest.mark.thorough
def test_sources_that_are_off_from_place_to_place_get_fields_of_their_own():
    data, new, wanted = products(0)
    fit = mrgp.fit("auto", data, progress=None)
    assert fit.recipe.bias == "field"
    assert said(fit.reasons, "more than a scale and an offset")
    line = mrgp.fit(mrgp.MRGP(bias="affine"), data, progress=None)
    at = mrgp.points(new, inputs=("x", "y"))
    found, other = (mrgp.evaluate(mrgp.predict(f, at), wanted) for f in (fit, line))
    assert found["crps"] < 0.7 * other["crps"]
    assert found["coverage_95"] > 0.85


def test_another_bias_is_taken_where_it_predicts_places_held_out_better(monkeypatch):
    data, *_ = products(1, shared=1.5)
    # Evidence that would have it otherwise.
    monkeypatch.setattr("mrgp.selection.choosing._Look.bias", lambda *_: "affine")
    recipe, reasons = mrgp.choose(data)
    assert recipe.bias == "field"
    assert said(reasons, "Places that are held out are predicted best with bias 'field'")


def test_a_stretch_has_all_places():
    times = np.repeat(np.arange(20.0), 3)
    x = np.column_stack([np.tile(np.arange(3.0), 20), times])
    sites = mrgp.Observations(mrgp.points(x, inputs=("x", "time")), times)
    seen = stretch(mrgp.Dataset([sites]), 12)["source"].y
    assert np.unique(seen, return_counts=True)[1].tolist() == [3, 3, 3, 3]


def test_sources_meet_whatever_covariates_one_of_them_has():
    rng = np.random.default_rng(8)
    x = rng.uniform(0.0, 4.0, (9, 2))
    kinds = np.array(["park", "road", "kerb"])[np.arange(9) % 3]
    sites = mrgp.Observations(mrgp.points(x, covariates={"kind": kinds}), np.ones(9), name="sites")
    cells = mrgp.Observations(mrgp.boxes([[0.0, 0.0]], [[4.0, 4.0]]), [1.0], name="cells")
    with pytest.warns(UserWarning, match="kind"):
        one, other = mrgp.Dataset([sites, cells]).supports
    assert meets(one, other).all()
