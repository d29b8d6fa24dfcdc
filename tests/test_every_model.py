"""Every model end to end: fitted, told, predicting points and regions, scored, saved and loaded."""

import numpy as np
import pytest

import mrgp
import zoo

INSIDE = np.linspace(0.3, 4.7, 12)
POINTS = mrgp.points(INSIDE[:, None])
CELLS = mrgp.intervals(INSIDE[:11], INSIDE[1:])
FINE = (np.arange(50) + 0.5) / 50


@pytest.mark.parametrize("name", zoo.RECIPES)
def test_a_fit_finds_the_field_behind_the_data(name):
    fit = zoo.fit(name)
    assert fit.status.ok
    assert np.isfinite(fit.history).all()
    truth = zoo.wave(INSIDE)
    found = mrgp.predict(fit, POINTS, task="no2")
    scores = mrgp.evaluate(found, truth)
    assert scores["rmse"] < 0.12 * truth.std()
    assert scores["coverage_95"] > 0.6
    inside = INSIDE[:11, None] + np.diff(INSIDE)[:, None] * FINE
    means = mrgp.predict(fit, CELLS, task="no2").mean
    np.testing.assert_allclose(means, zoo.wave(inside).mean(1), atol=0.15 * truth.std())


@pytest.mark.parametrize("name", zoo.RECIPES)
def test_a_fit_is_the_same_after_it_was_saved(name, tmp_path):
    fit = zoo.fit(name)
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit")
    a, b = (mrgp.predict(f, POINTS, task="no2", source="fine", noise=True) for f in (fit, again))
    for field in ("component_weights", "means", "variances"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    assert again.summary() == fit.summary()
    assert again.processes == fit.processes
