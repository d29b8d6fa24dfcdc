"""The AURN loader: columns, places, what is missing, and files that are not whole."""

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.cli import command
from mrgp.datasets import _http, aurn
from mrgp.datasets._http import FetchError

HEADER = "site,code,date,no2,o3,pm10,pm2.5\n"
ROWS = (
    "North,NN1,2018-06-18 01:00:00,8.5,40,12,6\n"
    "North,NN1,2018-06-18 00:00:00,7.5,41,13,\n"
    "South,SS2,2018-06-18 00:00:00,-0.4,,NA,5.5\n"
    "South,SS2,2018-06-18 01:00:00,,39,11,n/v\n"
)
SITES = "aurn_code,latitude,longitude,laqn_code\nNN1,51.6,-0.2,XX1\nSS2,51.4,0.1,XX2\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "aurn.csv"
    path.write_text(HEADER + ROWS)
    return path


@pytest.fixture
def sites(tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text(SITES)
    return path


def test_hours_are_joined_with_the_places_of_their_sites(file, sites):
    loaded = aurn(file, "NO2", sites=sites)
    frame = loaded.frame
    assert list(frame) == ["site", "time", "end", "lat", "lon", "no2"]
    assert frame["site"].tolist() == ["NN1", "NN1", "SS2", "SS2"]
    np.testing.assert_array_equal(frame["no2"], [7.5, 8.5, -0.4, np.nan])
    np.testing.assert_array_equal(frame["lat"], [51.6, 51.6, 51.4, 51.4])
    np.testing.assert_array_equal(frame["lon"], [-0.2, -0.2, 0.1, 0.1])
    hours = pd.to_datetime(["2018-06-18 00:00", "2018-06-18 01:00"] * 2, utc=True)
    np.testing.assert_array_equal(frame["time"], hours)
    np.testing.assert_array_equal(frame["end"], hours + pd.Timedelta("1h"))
    assert (loaded.units, loaded.missing, loaded.refused, loaded.notes) == ("ug/m3", 1, {}, ())
    assert str(loaded) == (
        "aurn, no2 in ug/m3: 4 hourly means at 2 sites, 2018-06-18 00:00 to 2018-06-18 02:00 UTC\n"
        f"source: {file}\nmissing: 1 of 4 values\nrefused: 0 sites"
    )
    o = loaded.observations()
    assert (o.name, o.task, o.support.inputs) == ("aurn", "no2", ("time", "lon", "lat"))
    assert o.support.flat == (False, True, True)


def test_texts_that_are_no_numbers_are_missing_and_said(file, sites):
    loaded = aurn(str(file), "pm2.5", sites=pd.read_csv(sites))
    np.testing.assert_array_equal(loaded.frame["pm25"], [np.nan, 6, 5.5, np.nan])
    assert loaded.missing == 2
    assert loaded.notes == ("values that are no numbers count as missing: n/v",)
    assert aurn(file, "pm10", sites=sites).missing == 1


def test_sites_without_a_place_are_named(tmp_path, file):
    places = pd.DataFrame({"Code": ["NN1", "SS2"], "Lat": [51.6, np.nan], "Lon": [-0.2, 0.1]})
    loaded = aurn(file, "no2", sites=places)
    assert loaded.refused == {"SS2": "no coordinates in degrees; rows left out: 2"}
    assert loaded.frame["site"].tolist() == ["NN1", "NN1"]
    with pytest.raises(ValueError, match=r"no row of a site with known .* are NN1, SS2\. Give si"):
        aurn(file, "no2", sites=places.assign(Code=["A", "B"]))
    file.write_text(HEADER + ROWS + "?,,2018-06-18 00:00:00,1,2,3,4\n")
    nameless = aurn(file, "no2", sites=places.assign(Lat=51.0))
    assert nameless.refused == {
        "(rows without a code)": "no coordinates in degrees; rows left out: 1"
    }


def test_the_file_may_have_the_places_itself(tmp_path, file, sites):
    table = pd.read_csv(file).merge(pd.read_csv(sites), left_on="code", right_on="aurn_code")
    wide = tmp_path / "wide.csv"
    table.to_csv(wide, index=False)
    expected = aurn(file, "no2", sites=sites).frame
    pd.testing.assert_frame_equal(aurn(wide, "no2").frame, expected)
    pd.testing.assert_frame_equal(aurn(table, "no2").frame, expected)
    moved = table.assign(latitude=np.arange(50.0, 54.0), code=None)
    rows = aurn(moved, "o3").frame.sort_values("lat")
    np.testing.assert_array_equal(rows["lat"], [50, 51, 52, 53])
    np.testing.assert_array_equal(rows["o3"], [40, 41, np.nan, 39])
    with pytest.raises(ValueError, match=r"needs a column 'latitude' or 'lat'; .* Give sites="):
        aurn(file, "no2")


def test_a_mark_may_lead_and_a_repeated_row_counts_once(file, sites):
    file.write_bytes(b"\xef\xbb\xbf" + (HEADER + ROWS + ROWS).encode())
    loaded = aurn(file, "no2", sites=sites)
    assert len(loaded.frame) == 4
    assert loaded.notes == ("4 records came twice and are kept once",)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is empty. Download it again"),
        ("code,date,o3\nNN1,2018-06-18,1\n", r"no column of the species 'no2'; .*'o3'\]"),
        ("code,no2\nNN1,1\n", r"needs a column 'date'; it has \['code', 'no2'\]"),
        ("name,date,no2\nNN1,2018-06-18,1\n", "needs a column 'code' or 'site'; it has"),
        (HEADER + ROWS[:-20], "cut short: its last row has 3 fields, its first 7"),
        ("code,no2,date\nNN1,1,2018-06-18 00:00:00\nNN1,2,2018-06-18 0", "in row 2. If it is the"),
        ("code,no2,date\nNN1,1,18/06/2018 00:00\n", "1 of the 1 dates .* first is '18/06/2018 0"),
        ("\xff", "no text in UTF-8"),
    ],
)
def test_files_of_another_format_are_refused(file, sites, text, error):
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=error):
        aurn(file, "no2", sites=sites)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.csv. Give a CSV file of UK-AIR"):
        aurn(tmp_path / "none.csv", "no2")


@pytest.fixture
def address(monkeypatch):
    """A server on this machine that fails once, then serves a file; /none.csv is not there."""
    waits, asked = [], []
    monkeypatch.setattr(_http, "wait", waits.append)
    monkeypatch.setenv("no_proxy", "*")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status = 404 if "none" in self.path else 500 if len(asked) == 1 else 200
            self.send_response(status)
            body = (HEADER + ROWS).encode() if status == 200 else b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_an_address_is_fetched_with_patience(address, file, sites):
    loaded = aurn(f"{address}/aurn.csv", "no2", sites=sites)
    pd.testing.assert_frame_equal(loaded.frame, aurn(file, "no2", sites=sites).frame)
    assert loaded.source == f"{address}/aurn.csv"
    with pytest.raises(FetchError, match=r"none\.csv was not loaded: HTTP 404 Not Found\. Check"):
        aurn(f"{address}/none.csv", "no2", sites=sites)


@pytest.fixture
def real():
    path = Path(os.environ.get("MRGP_DATA") or "-") / "aurn_london_2018"
    if not path.is_dir():
        pytest.skip("MRGP_DATA names no folder of real data")
    return path


@pytest.mark.parametrize("species", ["no2", "pm10", "pm2.5"])
def test_real_hours_are_all_there(real, species):
    path = real / "window_2018-06-18_to_28.csv"
    loaded = aurn(path, species, sites=real / "sites.csv")
    table = pd.read_csv(path).sort_values(["code", "date"], kind="stable")
    assert loaded.refused == {}
    assert loaded.missing == table[species].isna().sum()
    np.testing.assert_array_equal(loaded.frame["site"], table["code"])
    np.testing.assert_array_equal(loaded.frame.iloc[:, -1], table[species])
    assert isinstance(loaded.observations(), mrgp.Observations)


def test_the_command_line_writes_a_table(file, sites, tmp_path, capsys):
    out = tmp_path / "new" / "no2.csv"
    arguments = ["data", "aurn", str(file), "--species", "NO2", "--sites", str(sites)]
    assert command([*arguments, "--out", str(out)]) == 0
    loaded = aurn(file, "NO2", sites=sites)
    written = pd.read_csv(out)
    np.testing.assert_array_equal(written["no2"], loaded.frame["no2"])
    assert f"wrote {out}" in capsys.readouterr().out
    assert command([*arguments, "--out", "no2.xlsx"]) == 1
    assert "--out no2.xlsx must end in .csv or .parquet." in capsys.readouterr().err
