"""NO2 in London: what is held out, what the blocks average, and where they lie."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrgp.datasets import london_folds, london_no2
from mrgp.io.geography import kilometres_per_degree

# Four sites in one block, on whose western edge one of them lies; two in another; four in a third.
PLACES = {
    "A1": (-0.1, 51.45),
    "A2": (0.0, 51.40),
    "A3": (0.05, 51.48),
    "A4": (0.09, 51.31),
    "B1": (-0.4, 51.45),
    "B2": (-0.35, 51.46),
    "C1": (0.11, 51.51),
    "C2": (0.12, 51.52),
    "C3": (0.13, 51.53),
    "C4": (0.14, 51.54),
}
HOURS = 72


def values(start, name):
    time = pd.date_range(start, periods=HOURS, freq="h")
    frames = [
        pd.DataFrame({name: site, "time": time, "no2": 100.0 * i + np.arange(HOURS)})
        for i, site in enumerate(PLACES)
    ]
    return pd.concat(frames).sample(frac=1, random_state=0)


@pytest.fixture
def laqn(tmp_path, monkeypatch):
    """Ten sites whose values say site and hour; A2 is silent in hour 50, C4 from hour 60."""
    frame = values("2022-02-19", "site")
    hour = frame["no2"] % 100
    frame.loc[(frame["site"] == "A2") & (hour == 50), "no2"] = np.nan
    frame = frame[(frame["site"] != "C4") | (hour < 60)]
    (tmp_path / "laqn_2022").mkdir()
    frame.to_csv(tmp_path / "laqn_2022" / "window_no2_2022-02-19_to_21.csv", index=False)
    rows = [(site, lat, lon, 1e6) for site, (lon, lat) in PLACES.items()]
    columns = ["@SiteCode", "@Latitude", "@Longitude", "@LatitudeWGS84"]
    places = pd.DataFrame([*rows, ("Z9", 51.5, 0.0, 1e6)], columns=columns)
    places.to_csv(tmp_path / "laqn_2022" / "laqn_site_metadata.csv", index=False)
    monkeypatch.setenv("MRGP_DATA", str(tmp_path))


def blocks(recording):
    """Return {(hour, west, south): value} of the coarse source, with edges in degrees."""
    coarse = recording.data["blocks"]
    lower, upper = map(np.asarray, coarse.support.bounds)
    _, east, north = coarse.support.axes
    size = np.array([axis.step for axis in (east, north)]) * (upper - lower)[:, 1:]
    np.testing.assert_allclose(size, 0.2)
    np.testing.assert_array_equal(lower[:, 0], upper[:, 0])
    west = np.round(east.origin + east.step * lower[:, 1], 6).tolist()
    south = np.round(north.origin + north.step * lower[:, 2], 6).tolist()
    return dict(zip(zip(lower[:, 0].tolist(), west, south, strict=True), coarse.y, strict=True))


def test_a_forecast_holds_the_last_day_out_of_the_sites_alone(laqn):
    recording = london_no2(*london_folds())
    fine = recording.data["sites"]
    assert np.asarray(fine.support.x[:, 0]).max() == 47
    assert len(fine) == 48 * len(PLACES)
    hours = np.asarray(recording.support.x[:, 0])
    assert hours.min() == 48
    assert len(hours) == 24 * len(PLACES) - 1 - 12
    number = {site: i for i, site in enumerate(PLACES)}
    expected = [100 * number[s] + h for s, h in zip(recording.site, hours, strict=True)]
    np.testing.assert_array_equal(recording.y, expected)
    assert (recording.target, recording.task) == ("sites", "no2")


def test_blocks_are_biased_means_of_the_sites_that_report(laqn):
    found = blocks(london_no2(*london_folds()))
    assert {key[1:] for key in found} == {(-0.1, 51.3), (0.1, 51.5)}
    assert len(found) == 2 * HOURS
    assert found[7, -0.1, 51.3] == pytest.approx(0.6 * (7 + 150) + 5)
    assert found[50, -0.1, 51.3] == pytest.approx(0.6 * (50 + 500 / 3) + 5)
    assert found[61, 0.1, 51.5] == pytest.approx(0.6 * (61 + 700) + 5)


def test_blocks_do_without_the_sites_that_are_scored(laqn):
    gone = {}
    for fold in london_folds("leave-sites-out"):
        recording = london_no2(fold, protocol="leave-sites-out")
        gone[fold] = set(recording.site)
        kept = [i for i, site in enumerate(PLACES) if site not in gone[fold]]
        seen = np.unique(recording.data["sites"].y // 100)
        np.testing.assert_array_equal(seen, kept)
        found = blocks(recording)
        first = np.mean([100 * i for i in kept if i < 4])
        assert found[7, -0.1, 51.3] == pytest.approx(0.6 * (7 + first) + 5)
    # Sites in order of their names go to the folds in turn.
    assert gone["0"] == {"A1", "C3"}
    assert sorted(set.union(*gone.values())) == sorted(PLACES)


def test_places_are_kilometres_that_know_their_degrees(laqn):
    support = london_no2(*london_folds()).support
    across, along = kilometres_per_degree(51.5)
    x = np.asarray(support.x)
    np.testing.assert_allclose(x[0, 1:], [0.0 * across, -0.05 * along], atol=1e-9)
    frame = london_no2(*london_folds()).data["sites"].to_frame()
    np.testing.assert_allclose(
        sorted(set(frame["lon"].round(6))), sorted({lon for lon, _ in PLACES.values()})
    )


def test_the_sites_of_2018_have_columns_of_their_own(tmp_path, monkeypatch):
    frame = values("2018-02-19", "code").rename(columns={"time": "date"})
    (tmp_path / "aurn_london_2018").mkdir()
    frame.to_csv(tmp_path / "aurn_london_2018" / "window_2018-02-19_to_21.csv", index=False)
    rows = [(site, lat, lon, "BL0") for site, (lon, lat) in PLACES.items()]
    columns = ["aurn_code", "latitude", "longitude", "laqn_code"]
    places = pd.DataFrame(rows, columns=columns)
    places.to_csv(tmp_path / "aurn_london_2018" / "sites.csv", index=False)
    monkeypatch.setenv("MRGP_DATA", str(tmp_path))
    recording = london_no2("21 February", protocol="aurn-2018")
    assert recording.data.sources == ("sites", "blocks")
    assert len(recording.y) == 24 * len(PLACES)
    assert len(blocks(recording)) == 2 * HOURS


def test_unknown_protocols_and_folds_are_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"protocol= is one of \('forecast', .*; got 'guess'"):
        london_no2("0", protocol="guess")
    with pytest.raises(ValueError, match=r"no fold of 'forecast' is named '0'; those are"):
        london_no2("0")


def test_the_real_blocks_and_sites_are_those_known():
    if not Path(os.environ.get("MRGP_DATA") or "-").is_dir():
        pytest.skip("MRGP_DATA names no folder of real data")
    recording = london_no2(*london_folds())
    assert len(set(recording.site)) == 66
    assert len({key[1:] for key in blocks(recording)}) == 6
    assert recording.data["sites"].y.min() < 0
    few = london_no2("21 February", protocol="aurn-2018")
    assert len(set(few.site)) == 5
    assert len({key[1:] for key in blocks(few)}) == 1
    folds = [london_no2(f, protocol="leave-sites-out") for f in london_folds("leave-sites-out")]
    assert sum(len(set(r.site)) for r in folds) == 66
    assert sum(len(r.y) for r in folds) == 4703
