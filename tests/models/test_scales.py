"""Sources on other scales than the target's: slips of units, and what never changes."""

import numpy as np
import pytest

import mrgp
from mrgp.models.scales import scales_of

RNG = np.random.default_rng(3)
X = np.sort(RNG.uniform(0, 10, 60))[:, None]
TRUTH = 4.0 + np.sin(X[:, 0])
SITES = mrgp.Observations(mrgp.points(X), TRUTH + 0.1 * RNG.normal(size=60), name="sites")
CELLS = mrgp.intervals(np.arange(20) / 2, np.arange(20) / 2 + 0.5)
MEANS = 4.0 - np.diff(np.cos(np.arange(21) / 2)) / 0.5 + 0.05 * RNG.normal(size=20)
NEW = mrgp.points(np.linspace(0.2, 9.8, 25)[:, None])


def cells(y):
    return mrgp.Observations(CELLS, y, name="cells")


@pytest.mark.filterwarnings("ignore:'cells' has values")
def test_a_slip_of_units_costs_nothing():
    data = mrgp.Dataset([SITES, cells(1000 * MEANS)])
    slip = mrgp.fit(mrgp.MRGP(bias="affine"), data, progress=None)
    right = mrgp.fit(mrgp.MRGP(bias="affine"), mrgp.Dataset([SITES, cells(MEANS)]), progress=None)
    found, wanted = mrgp.predict(slip, NEW), mrgp.predict(right, NEW)
    assert slip.parameters()["ratio[cells]"] == pytest.approx(1000, rel=0.1)
    np.testing.assert_allclose(found.mean, wanted.mean, atol=0.1 * wanted.std.max())
    np.testing.assert_allclose(found.std, wanted.std, rtol=0.1)


def test_what_never_changes_says_nothing_of_the_field():
    stuck = mrgp.Dataset([SITES, cells(np.full(20, 7.0))])
    beside = mrgp.fit(mrgp.MRGP(bias="affine"), stuck, progress=None)
    alone = mrgp.fit(mrgp.MRGP(bias="affine"), mrgp.Dataset([SITES]), progress=None)
    found, wanted = mrgp.predict(beside, NEW), mrgp.predict(alone, NEW)
    np.testing.assert_allclose(found.mean, wanted.mean, atol=0.05 * wanted.std.max())
    np.testing.assert_allclose(found.std, wanted.std, rtol=0.05)
    report = mrgp.predict(beside, CELLS, source="cells")
    np.testing.assert_allclose(report.mean, 7.0, atol=0.01)


def test_usual_ratios_start_at_one_and_few_values_have_no_scale():
    few = mrgp.Observations(CELLS[:2], [7.0, 7.0], name="few")
    data = mrgp.Dataset([SITES, cells(0.4 * MEANS), few])
    assert scales_of(data, "sites") == {"sites": 1.0, "cells": 1.0, "few": 1.0}
    assert scales_of(mrgp.Dataset([SITES[:5], cells(1000 * MEANS)]), "sites")["cells"] == 1.0


def test_what_averages_lose_is_no_scale():
    wide = cells(4.0 + 0.001 * np.arange(20))
    assert scales_of(mrgp.Dataset([SITES, wide]), "sites")["cells"] == 1.0


def test_a_target_that_never_changes_has_no_scale():
    flat = SITES.replace(y=np.full(60, 3.0))
    assert scales_of(mrgp.Dataset([flat, cells(MEANS)]), "sites") == {"sites": 1.0, "cells": 1.0}


@pytest.mark.parametrize("ratio", [0.5, 2.0, 20.0])
def test_a_multiple_of_the_field_is_one_of_its_level_too(ratio):
    data = mrgp.Dataset([SITES, cells(ratio * MEANS)])
    fit = mrgp.fit(mrgp.MRGP(bias="ratio"), data, progress=None)
    assert fit.parameters()["ratio[cells]"] == pytest.approx(ratio, rel=0.03)
    np.testing.assert_allclose(mrgp.predict(fit, mrgp.points(X)).mean, TRUTH, atol=0.25)
