"""Each caution with data that provoke it, and data that do not."""

import numpy as np
import pytest

import mrgp
from mrgp.checks import cautions
from mrgp.datasets import outliers

RNG = np.random.default_rng(5)
T = np.linspace(0.0, 10.0, 40)[:, None]
WAVE = np.sin(T[:, 0]) + 0.05 * RNG.standard_normal(40)
XY = RNG.uniform(0.0, 10.0, (60, 2))


def fitted(model, *sources):
    return mrgp.fit(model, mrgp.Dataset(list(sources)), progress=None)


HISS = RNG.standard_normal(150)


def line(y, name="line"):
    return mrgp.Observations(mrgp.points(np.linspace(0.0, 10.0, len(y))[:, None]), y, name=name)


def plane(y, names=("x", "y")):
    return mrgp.Observations(mrgp.points(XY, inputs=names), y, name="plane")


@pytest.fixture(scope="module")
def calm():
    return fitted(mrgp.MRGP(), line(WAVE))


def test_a_good_fit_has_none(calm):
    assert calm.warnings == () == cautions(calm)
    assert "careful" not in calm.summary()


def test_a_trend_brings_a_lengthscale_to_its_limit():
    fit = fitted(mrgp.MRGP(), plane(np.sin(XY[:, 0]) + 0.05 * XY[:, 1], ("a", "b")))
    (said,) = fit.warnings
    assert said.startswith("kernel.lengthscale along b is at its upper limit")
    assert 'Try mean="linear"' in said
    assert f"careful: {said}" in fit.summary()


def test_a_kernel_too_stiff_for_precise_values_brings_a_variance_to_its_limit():
    stiff = mrgp.Matern32(lengthscale=mrgp.fixed(300.0))
    precise = mrgp.Observations(mrgp.points(T), np.sin(T[:, 0]), noise_variance=1e-6)
    fit = fitted(mrgp.MRGP(stiff), precise)
    assert any(w.startswith("kernel.variance is at its upper limit") for w in fit.warnings)


def test_a_source_that_does_not_follow_the_field_is_named():
    flat = line(5 + 1e-4 * RNG.standard_normal(40), "flat")
    fit = fitted(mrgp.MRGP(bias="affine"), line(WAVE), flat)
    assert any(w.startswith("ratio[flat] is ") and "offset" in w for w in fit.warnings)


def test_a_source_that_follows_the_field_is_not():
    follows = line(5 + 2 * WAVE + 0.05 * RNG.standard_normal(40), "follows")
    fit = fitted(mrgp.MRGP(bias="affine"), line(WAVE), follows)
    assert not any(w.startswith("ratio") for w in fit.warnings)


def test_sources_on_other_levels_are_told_from_noise():
    high = line(8 + WAVE + 0.05 * RNG.standard_normal(40), "high")
    fit = fitted(mrgp.MRGP(), line(WAVE), high)
    assert any("is on another level than what other sources say" in w for w in fit.warnings)
    fit = fitted(mrgp.MRGP(bias="offset"), line(WAVE), high)
    assert not any("another level" in w for w in fit.warnings)


STRIPES = np.sin(2 * XY[:, 0]) + 0.02 * RNG.standard_normal(60)


def test_directions_of_one_space_that_differ_are_named():
    kernel = mrgp.RBF(lengthscale=[2.0, 2.0])
    fit = fitted(mrgp.MRGP(kernel), plane(STRIPES))
    assert any(
        "times as long along y as along x, directions of one space" in w for w in fit.warnings
    )


def test_directions_that_are_no_space_or_share_a_lengthscale_are_not():
    kernel = mrgp.RBF(lengthscale=[2.0, 2.0])
    apart = fitted(mrgp.MRGP(kernel), plane(STRIPES, ("x", "time")))
    assert not any("directions of one space" in w for w in apart.warnings)
    shared = fitted(mrgp.MRGP(), plane(STRIPES))
    assert not any("directions of one space" in w for w in shared.warnings)


def test_noise_that_eats_most_of_the_variance_is_named():
    fit = fitted(mrgp.MRGP(), line(HISS, "hiss"))
    (said,) = [w for w in fit.warnings if "noise" in w]
    assert said.startswith("noise_variance[hiss] is ")
    assert "of the variance of these values" in said


@pytest.mark.parametrize(("number", "missed"), [(4, True), (40, False)])
def test_inducing_inputs_that_miss_the_signal_are_counted(number, missed):
    """Four of them cannot follow a quick wave, whose rest then counts as noise."""
    kernel = mrgp.RBF(lengthscale=mrgp.fixed(0.25), variance=mrgp.fixed(0.5))
    model = mrgp.MRGP(kernel, method="collapsed", inducing=number)
    fit = fitted(model, line(np.sin(6 * T[:, 0])))
    said = [w for w in fit.warnings if w.startswith(f"The {number} inducing inputs miss")]
    assert bool(said) == missed


def test_warnings_are_saved_with_what_they_are_of(tmp_path):
    fit = fitted(mrgp.MRGP(), line(HISS, "hiss"))
    mrgp.save(fit, tmp_path / "fit")
    assert mrgp.load(tmp_path / "fit").warnings == fit.warnings


def test_a_sensor_stuck_for_a_day_is_named_by_the_fit_whatever_its_noise(tmp_path):
    data = outliers(0, "stuck", sensors=6).data
    quick = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)
    for likelihood in ("gaussian", "student_t"):
        seen = mrgp.Dataset([data["sensors"].replace(likelihood=likelihood)])
        with pytest.warns(UserWarning, match="24 values in a row"):
            fit = mrgp.fit(mrgp.MRGP(), seen, optimiser=quick, progress=None)
        (said,) = (w for w in fit.warnings if "in a row" in w)
        assert "24 values in a row at east" in said
        assert "from hour 12 to hour 35" in said
        assert f"careful: {said}" in fit.summary()
        mrgp.save(fit, tmp_path / "fit")
        assert said in mrgp.load(tmp_path / "fit").warnings
