"""Fits of deep models: stages, parts taken over, interruptions, and data that do not suit them."""

import dataclasses

import jax
import numpy as np
import pytest

import mrgp
import zoo
from mrgp.datasets import biased
from zoo import QUICK, sources

RECIPE = zoo.RECIPES["deep"][0]
GRID = mrgp.points(np.linspace(0.0, 8.0, 9)[:, None])
DATA = zoo.biased()


class Watched:
    """A progress that counts the parts begun, and stops the work in one of them."""

    def __init__(self, stop=""):
        self.titles, self.stop = [], stop

    def start(self, title, _):
        self.titles.append(title)

    def update(self, *_):
        if self.stop and self.titles[-1].startswith(self.stop):
            raise KeyboardInterrupt

    def finish(self, _):
        pass


@pytest.fixture(scope="module")
def fitted():
    return zoo.fit("deep")


def test_the_cut_fits_bases_and_then_experts(fitted):
    assert list(fitted.parts) == ["base[fine]", "base[coarse]", "expert[coarse]"]
    bounds = [part.history[-1] for part in fitted.parts.values()]
    np.testing.assert_allclose(fitted.history, [sum(bounds)])


@pytest.mark.thorough
def test_the_cut_ends_above_its_start(fitted):
    target = mrgp.objective(RECIPE, DATA)
    with jax.enable_x64(True):
        assert float(target(target.start)) < fitted.history[0]


def test_a_base_is_the_single_gp_of_its_source(fitted):
    recipe = fitted.parts["base[fine]"].recipe
    alone = mrgp.fit(recipe, DATA.select("fine"), optimiser=QUICK)
    np.testing.assert_allclose(alone.history, fitted.parts["base[fine]"].history, rtol=1e-12)


def test_the_bias_map_finds_the_bias(fitted):
    found = fitted.bias_map("coarse", values=[1.0, 1.4])
    np.testing.assert_allclose(found.mean, [0.0, 0.8], atol=3 * found.std.max() + 0.05)
    assert np.all(found.std > 0)
    assert np.all(found.std < 0.3)
    low, high = found.interval(0.5)
    np.testing.assert_allclose(0.5 * (low + high), found.mean)
    frame = found.to_frame(0.9)
    assert list(frame) == ["coarse", "mean", "std", "lower_90", "upper_90"]
    assert repr(found).startswith("BiasMap(coarse to fine, no2: 1 to 1.4 ppb becomes")


def test_the_default_values_of_a_bias_map_are_those_it_was_learned_on(fitted):
    found = fitted.bias_map("coarse")
    y = DATA["coarse"].y
    assert len(found.values) == 101
    assert y.min() - 0.3 < found.values[0] < found.values[-1] < y.max() + 0.3


def test_the_summary_names_the_parts(fitted):
    text = fitted.summary()
    assert "tree of 2 base GPs and 1 layer: expert[coarse] on 17 values; 6 paths" in text
    assert "exact bases keep their training data in the fit, and its file" in text
    assert "base[coarse].noise_variance" in text
    assert "1 missing left out" in text


@pytest.mark.thorough
def test_reuse_takes_over_the_parts_whose_data_are_the_same(fitted):
    fine, coarse = sources()
    other = mrgp.Dataset([fine[np.arange(12)], coarse])
    watched = Watched()
    again = mrgp.fit(RECIPE, other, optimiser=QUICK, reuse=fitted, progress=watched)
    assert again.parts["base[fine]"] is not fitted.parts["base[fine]"]
    assert next(t.split(":")[0] for t in watched.titles) == "base[fine]"
    same = mrgp.fit(RECIPE, DATA, optimiser=QUICK, reuse=fitted, progress=(second := Watched()))
    assert all(same.parts[name] is part for name, part in fitted.parts.items())
    assert second.titles == []


def test_reuse_leaves_parts_of_another_optimiser(fitted):
    other = dataclasses.replace(QUICK, max_steps=QUICK.max_steps - 1)
    for optimiser in (other, None):
        again = mrgp.fit(RECIPE, DATA, optimiser=optimiser, reuse=fitted)
        assert not any(again.parts[name] is part for name, part in fitted.parts.items())


@pytest.mark.thorough
def test_resume_goes_on_with_parts_at_their_step_limit():
    brief = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)
    begun = mrgp.fit(RECIPE, DATA, optimiser=brief)
    limited = [name for name, part in begun.parts.items() if part.status.code == "step limit"]
    assert limited
    watched = Watched()
    resumed = begun.resume(DATA, optimiser=QUICK, progress=watched)
    assert set(limited) <= {title.split(":")[0] for title in watched.titles}
    assert resumed.parts["base[fine]"].history[-1] > begun.parts["base[fine]"].history[-1]


@pytest.mark.thorough
def test_a_fit_that_was_stopped_goes_on_to_the_same_end():
    whole = mrgp.fit(RECIPE, DATA)
    stopped = mrgp.fit(RECIPE, DATA, progress=Watched(stop="base[coarse]"))
    assert stopped.status.code == "interrupted"
    assert "base[coarse]" in stopped.status.message
    assert np.isfinite(mrgp.predict(stopped, GRID).mean).all()
    watched = Watched()
    resumed = stopped.resume(DATA, progress=watched)
    assert resumed.status.code == "converged"
    assert not any(title.startswith("base[fine]") for title in watched.titles)
    np.testing.assert_allclose(
        mrgp.predict(resumed, GRID).mean, mrgp.predict(whole, GRID).mean, atol=0.02
    )


@pytest.mark.thorough
def test_the_joint_stage_raises_the_bound_and_bounds_the_noise_of_bases(fitted):
    joint = mrgp.fit(
        dataclasses.replace(RECIPE, schedule="joint", inducing=12),
        DATA,
        optimiser=mrgp.LBFGS(max_steps=8, starts=1, candidates=0),
    )
    assert len(joint.history) > 1
    assert joint.history[-1] > joint.history[1]
    assert np.all(np.diff(joint.history[1:]) >= -1e-6)
    before = joint.parts["base[coarse]"].parameters()["noise_variance[coarse]"]
    assert joint.parameters()["base[coarse].noise_variance"] <= 2 * before + 1e-12
    assert np.isfinite(mrgp.predict(joint, GRID).variance).all()


@pytest.mark.thorough
def test_a_source_apart_from_the_target_is_left_out_with_a_warning():
    fine, coarse = sources(start=60.0)
    with pytest.warns(UserWarning, match=r"do not overlap.*expert\[coarse\] is left out"):
        fit = mrgp.fit(RECIPE, mrgp.Dataset([fine, coarse]), optimiser=QUICK)
    assert list(mrgp.predict(fit, GRID).experts) == ["fine"]
    assert len(mrgp.predict(fit, mrgp.points([[62.0]]), source="coarse")) == 1
    chain = mrgp.Cascade(["coarse", "fine"], kernel_base=mrgp.RBF(), samples=6)
    with pytest.raises(ValueError, match=r"do not overlap.*Leave that source out of the chain"):
        mrgp.fit(chain, mrgp.Dataset([fine, coarse]), optimiser=QUICK)


@pytest.mark.thorough
def test_a_base_with_one_observation_works():
    fine, coarse = sources()
    fit = mrgp.fit(RECIPE, mrgp.Dataset([fine, coarse[np.array([3])]]), optimiser=QUICK)
    prediction = mrgp.predict(fit, GRID)
    assert np.isfinite(prediction.mean).all()
    assert np.all(prediction.variance > 0)


@pytest.mark.thorough
def test_no_lengthscale_ends_below_the_spacing_of_a_coarse_source():
    """Values that alternate look like noise, or like no correlation at all (theory 5.6)."""
    simulated = biased(0)
    recipe = mrgp.MRDGP(target="target", kernel_base=mrgp.RBF())
    fit = mrgp.fit(recipe, simulated.data)
    found = fit.parameters()
    for source in ("left", "right"):
        assert 0.6 < found[f"base[{source}].kernel.lengthscale"].item() < 2.0
        assert found[f"base[{source}].noise_variance"] < 0.1 * np.var(simulated.data[source].y)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: mrgp.fit(RECIPE, DATA, weights="auto"), "MRDGP has a GP for every source"),
        (lambda f: mrgp.composite_weights(RECIPE, DATA), "MRDGP has a GP for every source"),
        (lambda f: mrgp.fit(RECIPE, DATA, hyperparameters="keep"), "parameters of its own"),
        (lambda f: mrgp.fit(mrgp.MRGP(), DATA, reuse=f), "reuse= takes an earlier fit of a deep"),
        (lambda f: mrgp.fit(RECIPE, DATA, reuse=1), "reuse= takes an earlier fit of a deep"),
        (lambda f: f.bias_map("fine"), r"no map from 'fine'; there are maps from \['coarse'\]"),
        (lambda f: f.bias_map("coarse", at={"x1": 2.0}), "at= maps inputs over which the map"),
        (lambda f: f.bias_map("coarse").interval(95), "between 0 and 1; got 95"),
        (
            lambda f: f.parts["base[fine]"].bias_map("coarse"),
            "MRGP learns no maps between sources; fit mrgp.MRDGP",
        ),
    ],
)
def test_what_cannot_be_done_is_said(fitted, call, text):
    with pytest.raises(ValueError, match=text):
        call(fitted)


def test_weights_of_the_experts_may_come_from_a_function(fitted, tmp_path):
    def half(x):
        return np.stack([np.where(x[:, 0] < 4, 1.0, 0.0), np.where(x[:, 0] < 4, 0.0, 2.0)], 1)

    recipe = dataclasses.replace(RECIPE, mixing=half)
    fit = mrgp.fit(recipe, DATA, optimiser=QUICK, reuse=fitted)
    prediction = mrgp.predict(fit, GRID)
    np.testing.assert_allclose(prediction.weights["fine"], [1, 1, 1, 1, 0, 0, 0, 0, 0])
    left = prediction.experts["fine"].mean[:4]
    np.testing.assert_allclose(prediction.mean[:4], left, rtol=1e-12)
    with pytest.raises(TypeError, match="function"):
        mrgp.save(fit, tmp_path / "fit")
    wrong = mrgp.fit(
        dataclasses.replace(RECIPE, mixing=lambda x: x), DATA, optimiser=QUICK, reuse=fitted
    )
    with pytest.raises(ValueError, match=r"weight for each of the experts \['fine', 'coarse'\]"):
        mrgp.predict(wrong, GRID)


@pytest.mark.thorough
def test_weights_do_not_depend_on_the_units(fitted):
    tiny = mrgp.Dataset(
        [o.replace(y=1e-9 * o.y, units="g/m3") for o in DATA],
    )
    small = mrgp.fit(RECIPE, tiny, optimiser=QUICK)
    expected = mrgp.predict(fitted, GRID).weights["fine"]
    np.testing.assert_allclose(mrgp.predict(small, GRID).weights["fine"], expected, atol=0.02)


@pytest.mark.thorough
def test_a_base_is_not_taken_over_where_its_known_noise_is_another(fitted):
    fine, coarse = sources()
    sure, unsure = (
        mrgp.Dataset([fine, coarse.replace(noise_variance=np.full(14, v))]) for v in (1e-4, 0.2)
    )
    before = mrgp.fit(RECIPE, sure, optimiser=QUICK)
    after = mrgp.fit(RECIPE, unsure, optimiser=QUICK, reuse=before)
    assert after.model.observation_noise(("coarse", "no2")) == pytest.approx(0.2)
    assert after.parts["base[coarse]"] is not before.parts["base[coarse]"]


@pytest.mark.thorough
def test_one_value_of_the_target_leaves_the_map_open():
    fine, coarse = sources()
    fit = mrgp.fit(RECIPE, mrgp.Dataset([fine[np.array([2])], coarse]), optimiser=QUICK)
    found = fit.bias_map("coarse", values=[0.6, 1.8])
    assert np.all(found.std > 0.2)


@pytest.mark.thorough
def test_a_part_that_fails_is_named():
    broken = mrgp.RBF(variance=mrgp.fixed(1e308))
    recipe = dataclasses.replace(RECIPE, kernel_base={"coarse": broken})
    with pytest.raises(mrgp.FitError, match=r"failed in base\[coarse\]"):
        mrgp.fit(recipe, DATA, optimiser=QUICK)


def test_a_joint_prediction_of_many_nodes_is_refused(fitted):
    start = np.linspace(0, 7, 900)
    with pytest.raises(ValueError, match="Predict fewer regions at a time, or with fewer samples"):
        mrgp.predict(fitted, mrgp.intervals(start, start + 0.1), joint=True)
