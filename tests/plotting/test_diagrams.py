"""Diagrams: the parts that a recipe makes of data, what goes into what, and that all is legible."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest

import mrgp
from mrgp.plotting import plot_diagram
from mrgp.plotting.diagrams import diagram_of

mpl.use("Agg")
import matplotlib.pyplot as plt

X = np.random.default_rng(0).uniform(0.0, 10.0, (40, 2))
LOWER = 2 * np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), -1).reshape(-1, 2)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def spots(name, task="no2", count=40):
    support = mrgp.points(X[:count], inputs=("lon", "lat"))
    return mrgp.Observations(support, X[:count, 0], name=name, task=task, units="ppb")


def cells(name, task="no2", kind="mean"):
    support = mrgp.boxes(LOWER, LOWER + 2, inputs=("lon", "lat"), kind=kind)
    return mrgp.Observations(support, LOWER[:, 0], name=name, task=task, units="ppb")


ONE = mrgp.Dataset([spots("laqn"), cells("sat")])
THREE = mrgp.Dataset([spots("laqn"), cells("sat"), cells("a model with a long name")])
TASKS = mrgp.Dataset(
    [spots("laqn"), cells("sat"), spots("laqn", "pm10", 30), cells("cams", "pm10")]
)
CASES = {
    "mrgp": (mrgp.MRGP(), ONE),
    "affine": (mrgp.MRGP(bias="affine"), THREE),
    "vbagg": (mrgp.VBAgg(), mrgp.Dataset([spots("laqn")])),
    "center point": (mrgp.CenterPoint(mrgp.MRGP(bias="offset")), ONE),
    "network": (mrgp.MRGPRN(), TASKS),
    "constant": (mrgp.MRGPRN(kernel_w="constant", latents=1), TASKS),
    "positive": (mrgp.MRGPRN(positive=True, latents=4), ONE),
    "deep": (mrgp.MRDGP(target="laqn"), THREE),
    "deep tasks": (mrgp.MRDGP(target=("laqn", "no2"), deep_inputs=("lon", "lat")), TASKS),
    "alone": (mrgp.MRDGP(), mrgp.Dataset([spots("laqn")])),
    "cascade": (mrgp.Cascade(chain=["a model with a long name", "sat", "laqn"]), THREE),
    "chain of tasks": (mrgp.Cascade(chain=["cams", ("laqn", "pm10"), "sat"]), TASKS),
    "deep centres": (mrgp.CenterPoint(mrgp.MRDGP(target="laqn")), ONE),
}


def text_of(found, name):
    return found[name].text.split("\n")


def test_a_field_is_seen_through_every_support():
    found = diagram_of(*CASES["affine"])
    assert text_of(found, "f") == ["f", "GP over lon, lat"]
    assert found["support", ("laqn", "no2")].text == "value at 40 points"
    assert found["support", ("sat", "no2")].text == "c + r × mean over 25 boxes"
    assert text_of(found, ("observed", ("sat", "no2"))) == ["sat", "no2 (ppb)"]
    for process in THREE.processes:
        assert ("f", ("support", process)) in found.arrows
        assert (("support", process), ("observed", process)) in found.arrows
    assert [label for _, label in found.plates] == ["40 values", "25 values", "25 values"]


def test_what_is_seen_is_said_by_kind_of_region_and_count():
    one = mrgp.Observations(mrgp.intervals([0.0], [1.0], kind="sum"), [3.0], name="s")
    found = diagram_of(mrgp.MRGP(), mrgp.Dataset([one]))
    assert found["support", ("s", "value")].text == "sum over 1 interval"
    assert found.plates[0][1] == "1 value"
    gaps = mrgp.Observations(mrgp.points(X), np.where(X[:, 0] > 5, np.nan, 1.0), name="s")
    seen = int((X[:, 0] <= 5).sum())
    found = diagram_of(mrgp.MRGP(), mrgp.Dataset([gaps]))
    assert found["support", ("s", "value")].text == f"value at {seen} points"
    areas = [pytest.importorskip("shapely").box(0, 0, 1, 1)] * 2
    shapes = mrgp.Observations(mrgp.polygons(areas), [1.0, 2.0], name="s")
    found = diagram_of(mrgp.MRGP(), mrgp.Dataset([shapes]))
    assert found["support", ("s", "value")].text == "mean over 2 polygons"


def test_centre_points_are_said():
    found = diagram_of(*CASES["center point"])
    assert found.title == "CenterPoint(MRGP)"
    assert found["support", ("sat", "no2")].text == "c + value at the centres of 25 boxes"


def test_a_network_has_the_recipes_latents_in_every_task():
    found = diagram_of(*CASES["network"])
    assert (
        sum(box.column == 0 for box in found.boxes.values()) == mrgp.MRGPRN().latents_of(TASKS) == 2
    )
    for task in TASKS.tasks:
        assert found["sum", task].text == f"{task} = W₁ f₁ + W₂ f₂"
        assert found["W", task].kind == "gp"
        assert found["W", task].text == f"weights of {task}\nW₁ … W₂: 2 GPs"
        into = {start for start, end in found.arrows if end == ("sum", task)}
        assert into == {("W", task), ("f", 0), ("f", 1)}
    assert (("sum", "pm10"), ("support", ("cams", "pm10"))) in found.arrows
    assert (("sum", "no2"), ("support", ("cams", "pm10"))) not in found.arrows


def test_constant_and_positive_weights_are_told_apart():
    constant, positive = (diagram_of(*CASES[name]) for name in ("constant", "positive"))
    assert constant["W", "no2"].kind == "constant"
    assert constant["W", "no2"].text.endswith("W₁: 1 constant")
    assert positive["sum", "no2"].text == "no2 = exp(W₁) f₁ + … + exp(W₄) f₄"


def test_a_tree_is_the_recipes_plan():
    model, data = CASES["deep tasks"]
    found, plan = diagram_of(model, data), model.plan(data)
    for node in plan.branches:
        assert found[node.name].kind == ("gp" if node.parent is None else "layer")
        if node.parent is not None:
            assert (node.parent, node.name) in found.arrows
            assert found[node.name].column > found[node.parent].column
    for blend in plan.blends:
        into = {start for start, end in found.arrows if end == blend.name}
        assert into == {name for _, name in blend.experts}
        assert text_of(found, blend.name) == [f"{blend.task} (ppb)", "mixture, by precision"]
    assert text_of(found, "expert[pm10, no2]") == ["deep GP", "pm10 → laqn", "and lon, lat"]
    assert ("base[cams, pm10]", ("observed", ("cams", "pm10"))) in found.arrows


def test_a_chain_has_one_base_and_each_layer_its_own_data():
    found = diagram_of(*CASES["cascade"])
    assert [box.kind for box in found.boxes.values()].count("gp") == 1
    assert ("expert[sat]", ("observed", ("sat", "no2"))) in found.arrows
    assert text_of(found, "expert[laqn]") == ["deep GP", "sat → laqn"]
    assert text_of(found, "mixture[no2]") == ["no2 (ppb)", "prediction"]


@pytest.mark.parametrize("case", CASES)
def test_no_text_leaves_its_box_and_no_box_meets_another(case):
    model, data = CASES[case]
    if case == "chain of tasks":
        data = mrgp.Dataset([o for o in data if o.process != ("laqn", "no2")])
    figure = plot_diagram(model, data)
    figure.canvas.draw()
    (axes,) = figure.axes
    found = diagram_of(model, data)
    boxes = [p for p in axes.patches if type(p).__name__ == "FancyBboxPatch"]
    assert len(boxes) == len(found.boxes)
    extents = [box.get_window_extent() for box in boxes]
    for first, second in itertools.combinations(extents, 2):
        assert not first.overlaps(second)
    said = [t for t in axes.texts if "value" not in t.get_text() or "\n" in t.get_text()]
    paper = figure.bbox
    for text in axes.texts:
        inside = text.get_window_extent()
        assert paper.x0 <= inside.x0
        assert inside.x1 <= paper.x1
    for text in said:
        inside = text.get_window_extent()
        around = [e for e in extents if e.contains(*inside.get_points().mean(0))]
        assert any(e.x0 <= inside.x0 and inside.x1 <= e.x1 for e in around), text.get_text()
    assert figure.get_figwidth() < 10.5


def test_what_has_no_diagram_is_told():
    class Other:
        def view(self, data):
            return data

    with pytest.raises(TypeError, match="MRDGP, Cascade and CenterPoint of them; got Other"):
        plot_diagram(Other(), ONE)
    with pytest.raises(TypeError, match="got str"):
        plot_diagram("auto", ONE)
