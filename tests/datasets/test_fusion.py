"""Monitors and a model's cells: folds by site, squares about centres, thinned grids."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrgp.datasets import fusion, fusion_folds

FOLDER = "seus_pm25_june2004"


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Eight sites, one a fold, on two days, and twelve cells on the same days."""
    days = pd.to_datetime(["2004-06-01", "2004-06-03"])
    sites = pd.DataFrame({"space_id": np.arange(8.0), "x": 100.0 + np.arange(8), "y": 50.0})
    monitors = sites.merge(pd.DataFrame({"date": days}), how="cross")
    monitors["pm25"] = 10 * monitors["space_id"] + monitors["date"].dt.day
    (tmp_path / FOLDER).mkdir()
    monitors.sample(frac=1, random_state=0).to_csv(tmp_path / FOLDER / "aqs_points.csv")
    folds = pd.DataFrame({"space_id": np.arange(8.0), "fold": (np.arange(8) + 3) % 8})
    folds.to_csv(tmp_path / FOLDER / "folds.csv", index=False)
    cells = pd.DataFrame({"space_id": range(1, 13), "x": 12.0 * np.arange(12), "y": 7.0})
    grid = cells.merge(pd.DataFrame({"date": days}), how="cross").assign(other=0.0)
    grid["ctm"] = grid["space_id"] + 0.1 * grid["date"].dt.day
    grid.to_parquet(tmp_path / FOLDER / "cmaq_grid.parquet")
    monkeypatch.setenv("MRGP_DATA", str(tmp_path))


def test_a_fold_holds_its_sites_out_on_all_days(small):
    for number, fold in enumerate(fusion_folds()):
        recording = fusion(fold)
        site = (number - 3) % 8
        order = np.argsort(recording.y)
        np.testing.assert_array_equal(recording.y[order], [10 * site + 1, 10 * site + 3])
        expected = [[100 + site, 50, 0], [100 + site, 50, 2]]
        np.testing.assert_array_equal(np.asarray(recording.support.x)[order], expected)
        seen = recording.data["aqs"]
        assert len(seen) == 14
        x, _, day = np.asarray(seen.support.x).T
        np.testing.assert_array_equal(seen.y, 10 * (x - 100) + day + 1)
        assert not np.any(x == 100 + site)
        assert (recording.target, recording.task) == ("aqs", "pm25")
        assert recording.site is None


def test_cells_are_squares_about_their_centres_at_one_day(small):
    coarse = fusion("0").data["cmaq"]
    assert coarse.process == ("cmaq", "pm25")
    lower, upper = coarse.support.bounds
    np.testing.assert_array_equal(upper - lower, [[12.0, 12.0, 0.0]] * 24)
    centre = (np.asarray(lower) + np.asarray(upper)) / 2
    np.testing.assert_allclose(coarse.y, centre[:, 0] / 12 + 1 + 0.1 * (centre[:, 2] + 1))
    assert fusion("0").data.inputs == ("x", "y", "day")


def test_a_stride_keeps_whole_cells(small):
    coarse = fusion("0", stride=5).data["cmaq"]
    np.testing.assert_allclose(np.sort(coarse.y), [1.1, 1.3, 6.1, 6.3, 11.1, 11.3])


def test_folds_and_strides_that_are_not_there_are_refused(small):
    with pytest.raises(ValueError, match=r"no fold is named '8'; the folds are \('0', "):
        fusion("8")
    with pytest.raises(ValueError, match="stride= must be a whole number, at least 1; got 0"):
        fusion("0", stride=0)


def test_missing_files_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("MRGP_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"has no seus_pm25_june2004/aqs_points\.csv"):
        fusion("0")
    monkeypatch.delenv("MRGP_DATA")
    with pytest.raises(FileNotFoundError, match="variable MRGP_DATA names, and it is not set"):
        fusion("0")


@pytest.mark.thorough
def test_simple_predictions_of_the_real_folds_have_the_errors_known_of_them():
    if not Path(os.environ.get("MRGP_DATA") or "-").is_dir():
        pytest.skip("MRGP_DATA names no folder of real data")
    level, line, raw = [], [], []
    for fold in fusion_folds():
        recording = fusion(fold)
        fine, coarse = recording.data["aqs"], recording.data["cmaq"]
        assert len(coarse) == 72_000
        kept, gone = (_nearest(coarse, s) for s in (fine.support, recording.support))
        level.append(recording.y - fine.y.mean())
        line.append(recording.y - np.polyval(np.polyfit(kept, fine.y, 1), gone))
        raw.append(recording.y - gone)
    errors = [np.sqrt(np.mean(np.concatenate(e) ** 2)) for e in (level, line, raw)]
    np.testing.assert_allclose(errors, [6.63, 5.28, 7.24], atol=0.03)


def _nearest(coarse, support):
    """Return the value of the cell nearest to each point on its day."""
    centre = np.asarray(coarse.support.collapse().x)
    found = []
    for point in np.asarray(support.x):
        distance = np.where(centre[:, 2] == point[2], np.hypot(*(centre - point)[:, :2].T), np.inf)
        found.append(coarse.y[np.argmin(distance)])
    return np.array(found)
