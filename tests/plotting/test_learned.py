"""A fit at a glance: histories, noises, biases and lengthscales, each as it is."""

import dataclasses

import matplotlib as mpl
import numpy as np
import pytest

import mrgp
import zoo
from mrgp.plotting import plot_fit

mpl.use("Agg")
import matplotlib.pyplot as plt

X = np.linspace(0.0, 6.0, 12)
START = np.arange(0.0, 6.0, 1.5)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    sites = mrgp.points(X[:, None], inputs="day")
    spans = mrgp.intervals(START, START + 1.5, inputs="day")
    return mrgp.Dataset(
        [
            mrgp.Observations(sites, 20 + np.sin(X), task="no2", name="sites", units="ppb"),
            mrgp.Observations(spans, 9 + START, task="no2", name="sat"),
        ]
    )


@pytest.fixture(scope="module")
def fit(data):
    steps = mrgp.LBFGS(max_steps=4)
    return mrgp.fit(mrgp.MRGP(bias="affine"), data, optimiser=steps, progress=None)


def texts(labels):
    return [label.get_text() for label in labels]


def test_the_overview_has_what_was_learned_in_units(fit):
    history, noise, offset, ratio, length = fit.plot().axes
    np.testing.assert_allclose(history.get_lines()[0].get_ydata(), fit.history)
    np.testing.assert_array_equal(history.get_lines()[0].get_xdata(), [1, 2, 3, 4])
    assert (history.get_xlabel(), history.get_ylabel()) == ("step", "log evidence or bound")
    values = fit.parameters()
    assert (noise.get_xlabel(), texts(noise.get_yticklabels())) == (
        "noise sd (ppb)",
        ["sites", "sat"],
    )
    learned = [values[f"noise_variance[{source}]"] for source in ("sites", "sat")]
    np.testing.assert_allclose(noise.collections[0].get_offsets()[:, 0] ** 2, learned, rtol=1e-6)
    assert noise.get_xscale() == "log"
    for axes, name, label in ((offset, "offset", "offset (ppb)"), (ratio, "ratio", "ratio")):
        assert axes.get_xlabel() == label
        np.testing.assert_allclose(axes.collections[0].get_offsets()[0, 0], values[f"{name}[sat]"])
    assert offset.get_lines()[0].get_xdata()[0] == 0
    assert ratio.get_lines()[0].get_xdata()[0] == 1
    assert length.get_xlabel() == "lengthscale of day"
    np.testing.assert_allclose(
        length.collections[0].get_offsets()[0, 0], values["kernel.lengthscale"][0]
    )
    assert texts(length.texts) == [f"{values['kernel.lengthscale'][0]:.3g}"]


def plane(kernel, count=12):
    x = np.random.default_rng(0).uniform(size=(count, 3)) * [1.0, 10.0, 100.0]
    seen = mrgp.Observations(mrgp.points(x, inputs=("a", "b", "c")), np.sin(x[:, 0]), name="s")
    steps = mrgp.LBFGS(max_steps=1)
    data = mrgp.Dataset([seen])
    return mrgp.fit(mrgp.MRGP(kernel=kernel), data, optimiser=steps, progress=None, throw=False)


def lengths(fit):
    return {
        axes.get_xlabel().removeprefix("lengthscale of "): axes.collections[0].get_offsets()[:, 0]
        for axes in fit.plot("lengthscales").axes
    }


def test_lengthscales_go_by_the_inputs_that_their_kernel_sees():
    fit = plane(mrgp.RBF(dims=("c", "a")))
    third, first = fit.parameters()["kernel.lengthscale"]
    assert lengths(fit) == {"c": third, "a": first}
    fit = plane(mrgp.RBF(dims=("b", "a", "c")) + mrgp.RBF(lengthscale=2.0))
    values = fit.parameters()
    second, first, third = values["kernel.RBF.lengthscale"]
    shared = values["kernel.RBF 2.lengthscale"]
    assert lengths(fit) == {"b": second, "a": first, "c": third, "a, b, c": shared}


def test_lengthscales_of_separable_kernels_are_drawn_and_those_of_a_period_apart():
    fit = plane(mrgp.separable(a=mrgp.Matern32() + mrgp.Periodic(0.5), space=mrgp.RBF()))
    values = fit.parameters()
    found = lengths(fit)
    assert list(found) == ["a", "a period", "b", "c"]
    np.testing.assert_allclose(found["a"], values["kernel.Matern32(a).lengthscale"])
    np.testing.assert_allclose(found["c"], values["kernel.RBF(b, c).lengthscale"][1])


def test_lengthscales_of_the_parts_of_other_models_are_drawn():
    assert list(lengths(zoo.fit("deep"))) == ["x1"]
    # Two latent functions, and two weights in each of two tasks.
    assert len(lengths(zoo.fit("network"))["x1"]) == 6


def test_noises_are_in_the_order_of_the_tasks():
    x = mrgp.points(X[:, None], inputs="day")
    several = [
        mrgp.Observations(x, np.sin(X), task=task, name="sites", units=units)
        for task, units in (("so2", "z"), ("no2", "a"))
    ]
    steps = {"optimiser": mrgp.LBFGS(max_steps=1), "progress": None, "throw": False}
    linear = mrgp.MRGPRN(latents=1, kernel_w="constant")
    fit = mrgp.fit(linear, mrgp.Dataset(several), **steps)
    assert [axes.get_xlabel() for axes in fit.plot("noise").axes] == [
        "noise sd (z)",
        "noise sd (a)",
    ]


def test_values_lie_within_their_axes(fit):
    for axes in fit.plot().axes[1:]:
        low, high = axes.get_xlim()
        at = axes.collections[0].get_offsets()[:, 0]
        assert np.all((low < at) & (at < high))


def test_a_kind_is_drawn_alone_and_others_are_told(fit):
    assert [axes.get_xlabel() for axes in fit.plot("bias").axes] == ["offset (ppb)", "ratio"]
    with pytest.raises(ValueError, match=r"kind= is one of \('overview', .*; got 'bais'"):
        fit.plot("bais")
    with pytest.raises(ValueError, match="this fit of MRGP has no history to draw"):
        plot_fit(dataclasses.replace(fit, history=np.zeros(0)), "history")


def test_parts_are_drawn_by_how_far_they_are_below_their_best(fit):
    parts = {
        "base[a]": dataclasses.replace(fit, history=np.array([-9.0, 0.0, 1.0])),
        "expert[b]": dataclasses.replace(fit, history=np.array([5.0, 95.0, 105.0])),
        "base[still]": dataclasses.replace(fit, history=np.array([7.0])),
    }
    deep = dataclasses.replace(fit, parts=parts, history=np.array([3.0]))
    (axes,) = plot_fit(deep, "history").axes
    a, b = axes.get_lines()
    np.testing.assert_allclose(a.get_ydata(), [10.0, 1.0, 1e-3])
    np.testing.assert_allclose(b.get_ydata(), [100.0, 10.0, 1e-3])
    assert texts(axes.get_legend().get_texts()) == ["base[a]", "expert[b]"]
    assert axes.get_yscale() == "log"


def test_steps_of_adam_are_counted_in_stretches(fit):
    slow = dataclasses.replace(fit, optimiser=mrgp.Adam())
    (axes,) = plot_fit(slow, "history").axes
    np.testing.assert_array_equal(axes.get_lines()[0].get_xdata(), [50, 100, 150, 200])


def test_a_history_that_begins_far_below_shows_its_end(fit):
    history = np.concatenate([[-1e6, -1e4], np.linspace(0.0, 10.0, 40)])
    (axes,) = plot_fit(dataclasses.replace(fit, history=history), "history").axes
    low, high = axes.get_ylim()
    assert -20 < low < 0
    assert 10 < high < 20


def test_an_exact_fit_keeps_its_data_and_draws_its_diagram(fit, data):
    kept = fit.kept_data()
    assert kept is not None
    assert kept.processes == data.processes
    for process in data.processes:
        np.testing.assert_allclose(kept[process].y, data[process].y, atol=1e-9)
        for ours, theirs in zip(
            kept[process].support.bounds, data[process].support.bounds, strict=True
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert kept.units == {"no2": "ppb"}
    assert "c + r × mean over 4\nintervals" in texts(fit.diagram().axes[0].texts)


def test_a_fit_without_its_data_asks_for_them(fit, data):
    bare = dataclasses.replace(fit, records=None)
    assert bare.kept_data() is None
    with pytest.raises(ValueError, match=r"give them, as fit.diagram\(data\)"):
        bare.diagram()
    with pytest.raises(ValueError, match="does not keep the data of all its sources"):
        fit.diagram(data.select(source="sat"))
    assert bare.diagram(data).axes[0].get_title() == "MRGP"
