"""Windows of a year of NO2: what is held out, of which sites and hours."""

import os
from pathlib import Path

import numpy as np
import pytest

from mrgp.datasets import london_year, london_year_folds

RECORDED = pytest.mark.skipif(
    not Path(os.environ.get("MRGP_DATA") or "-").is_dir(), reason="needs the recorded data"
)


def places(support):
    return {tuple(row) for row in support.centres[:, 1:3]}


def test_windows_are_those_of_the_protocols():
    assert len(london_year_folds()) == 32
    assert len(london_year_folds("gaps", 30)) == 12
    assert len(london_year_folds("forecast", 30)) == 12
    assert london_year_folds("unseen-sites", 365) == ("day 1, fold 0",)
    with pytest.raises(ValueError, match="no protocol is named 'all'; the protocols are"):
        london_year_folds("all")
    with pytest.raises(ValueError, match=r"has windows of 3 days, of 30, .* got 365"):
        london_year_folds("forecast", 365)


@RECORDED
def test_unseen_sites_are_a_quarter_and_every_site_is_in_one_fold():
    cases = [london_year(f"day 50, fold {k}") for k in range(4)]
    held = [places(case.support) for case in cases]
    assert all(not h & places(c.data["sites"].support) for h, c in zip(held, cases, strict=True))
    every = set.union(*held)
    assert sum(map(len, held)) == len(every) > 60
    assert len(held[0]) == pytest.approx(len(every) / 4, abs=1)
    assert len(cases[0].means["window"]) == len(held[0])


@RECORDED
def test_a_gap_is_one_run_of_days_of_sites_that_are_seen_otherwise():
    case = london_year("day 152, fold 1", "gaps", 30)
    assert places(case.support) < places(case.data["sites"].support)
    for place in list(places(case.support))[:3]:
        mine = np.all(case.support.centres[:, 1:3] == place, axis=1)
        hours = case.support.centres[mine, 0]
        assert hours.max() - hours.min() < 7 * 24


@RECORDED
def test_a_forecast_is_of_the_day_after_the_window():
    case = london_year("day 50", "forecast", 3)
    assert case.data["sites"].support.centres[:, 0].max() < 72.0
    assert case.support.centres[:, 0].min() == 72.0
    assert case.support.centres[:, 0].max() == 95.0


@RECORDED
def test_a_bare_case_has_no_types():
    case = london_year("day 50", "forecast", 3)
    assert case.support.input_names == ("time", "lon", "lat", "type")
    for seen in (case.bare.support, *(m.support for m in case.bare.means.values())):
        assert seen.input_names == ("time", "lon", "lat")
        assert seen.kind == "mean"
    assert case.bare.data.covariates is None
    np.testing.assert_array_equal(case.bare.y, case.y)
