"""Recorded data: windows, gaps, complete sites, and what is said where files are missing."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrgp.datasets import folds, inter_task, inter_task_laqn, laqn_sites, window_means

HOURS = 264


def write(folder, file, frame):
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.sample(frac=1, random_state=0).to_csv(path, index=False)


@pytest.fixture
def aurn(tmp_path, monkeypatch):
    """A folder with the rows of KC1 and of another site in no order."""
    time = pd.date_range("2018-06-18", periods=HOURS, freq="h")
    hour = np.arange(float(HOURS))
    mine = pd.DataFrame({"code": "KC1", "date": time, "pm10": hour**2, "pm2.5": hour + 0.5})
    other = mine.assign(code="MY1", pm10=-1.0)
    write(tmp_path, "aurn_london_2018/window_2018-06-18_to_28.csv", pd.concat([mine, other]))
    monkeypatch.setenv("MRGP_DATA", str(tmp_path))
    return hour


@pytest.fixture
def laqn(tmp_path, monkeypatch):
    """A folder of sites that lack their first hours; PM2.5 of D1 is not there."""
    time = pd.date_range("2022-06-18", periods=HOURS, freq="h")
    hour = np.arange(float(HOURS))
    lost = {"pm10": {"A1": 0, "B1": 7, "C1": 0, "D1": 0}, "pm25": {"A1": 0, "B1": 0, "C1": 8}}
    for task, by_site in lost.items():
        frames = [
            pd.DataFrame({"time": time, "site": site, task: np.where(hour < first, np.nan, hour)})
            for site, first in by_site.items()
        ]
        write(tmp_path, f"laqn_2022/window_{task}_2022-06-18_to_28.csv", pd.concat(frames))
    monkeypatch.setenv("MRGP_DATA", str(tmp_path))


@pytest.mark.parametrize("window", [2, 5, 10, 24])
def test_windows_are_means_at_their_own_hours(window):
    y = np.random.default_rng(0).normal(size=HOURS)
    support, means = window_means(y, window)
    starts = range(0, HOURS, window)
    assert len(support) == len(means) == len(starts)
    for k, start in enumerate(starts):
        used = np.asarray(support.weights[k]) > 0
        hours = np.asarray(support.x[k, used, 0])
        np.testing.assert_array_equal(hours, np.arange(start, min(start + window, HOURS)))
        np.testing.assert_allclose(support.weights[k, used], 1 / len(hours))
        assert means[k] == pytest.approx(sum(y[int(h)] for h in hours) / len(hours))


def test_missing_hours_belong_to_no_window():
    support, means = window_means(np.array([np.nan, np.nan, 4.0, np.nan, 1.0, 3.0]), 2)
    np.testing.assert_array_equal(means, [4.0, 2.0])
    np.testing.assert_array_equal(support.weights, [[1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(support.collapse().x[:, 0], [2.0, 4.5])


@pytest.mark.parametrize("window", [0, 7])
def test_windows_that_do_not_fit_are_refused(window):
    with pytest.raises(ValueError, match=f"between 1 and the 6 hours given; got {window}"):
        window_means(np.zeros(6), window)


def test_a_fold_removes_two_days_from_the_fine_task_alone(aurn):
    for number, fold in enumerate(folds()):
        recording = inter_task(fold, window=24)
        gone = np.arange(48 * number, 48 * number + 48)
        np.testing.assert_array_equal(recording.support.x[:, 0], gone)
        np.testing.assert_array_equal(recording.y, gone + 0.5)
        fine, coarse = recording.data["KC1", "pm25"], recording.data["KC1", "pm10"]
        kept = np.setdiff1d(aurn, gone)
        np.testing.assert_array_equal(fine.support.x[:, 0], kept)
        np.testing.assert_array_equal(fine.y, kept + 0.5)
        np.testing.assert_allclose(coarse.y, (aurn**2).reshape(11, 24).mean(1))
        assert (recording.target, recording.task) == ("KC1", "pm25")
    assert len(folds()) == 5


def test_sites_are_those_where_both_are_nearly_complete(laqn):
    assert laqn_sites() == ("A1", "B1")
    recording = inter_task_laqn("B1", window=5)
    np.testing.assert_array_equal(recording.support.x[:, 0], np.arange(96, 144))
    coarse = recording.data["B1", "pm10"]
    np.testing.assert_array_equal(coarse.y[:3], [np.mean([7, 8, 9]), 12, 17])
    assert len(coarse) == 52
    assert recording.data["B1", "pm25"].observed.all()


def test_unknown_folds_and_sites_are_named_with_those_there_are(laqn):
    with pytest.raises(ValueError, match=r"no fold is named '29 June'; .*'18-19 June'"):
        inter_task("29 June")
    with pytest.raises(ValueError, match=r"97% of the hours .* is named 'C1'; .*'A1', 'B1'"):
        inter_task_laqn("C1")


def test_missing_data_name_the_variable_and_the_file(tmp_path, monkeypatch):
    monkeypatch.delenv("MRGP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="variable MRGP_DATA names, and it is not set"):
        inter_task(folds()[0])
    monkeypatch.setenv("MRGP_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"has no laqn_2022/window_pm25_2022.*csv"):
        laqn_sites()


@pytest.fixture
def real():
    if not Path(os.environ.get("MRGP_DATA") or "-").is_dir():
        pytest.skip("MRGP_DATA names no folder of real data")


def test_simple_predictions_of_the_real_folds_have_the_errors_known_of_them(real):
    constant, regression = [], []
    for fold in folds():
        recording = inter_task(fold, window=1)
        fine, coarse = recording.data["KC1", "pm25"], recording.data["KC1", "pm10"]
        kept = np.asarray(fine.support.x[:, 0], dtype=int)
        gone = np.asarray(recording.support.x[:, 0], dtype=int)
        line = np.polyfit(coarse.y[kept], fine.y, 1)
        constant.append(np.mean((recording.y - fine.y.mean()) ** 2))
        regression.append(np.mean((recording.y - np.polyval(line, coarse.y[gone])) ** 2))
    assert np.mean(constant) == pytest.approx(8.1, abs=0.05)
    assert np.mean(regression) == pytest.approx(1.75, abs=0.005)


def test_eighteen_real_sites_are_nearly_complete(real):
    sites = laqn_sites()
    assert len(sites) == 18
    for site in sites:
        recording = inter_task_laqn(site, window=24)
        missing = sum(int((~o.observed).sum()) for o in recording.data)
        assert missing + np.isnan(recording.y).sum() <= 0.03 * HOURS
