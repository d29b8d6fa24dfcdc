"""The LAQN loader against a server on this machine that plays recorded formats and faults."""

import dataclasses
import datetime
import email.utils
import gzip
import json
import os
import re
import socket
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.cli import command
from mrgp.datasets import Loaded, _http, laqn
from mrgp.datasets._http import Fetcher, FetchError, Incomplete

DAY = {"start": "2022-02-19", "end": "2022-02-20"}
BOM = b"\xef\xbb\xbf"


@dataclasses.dataclass
class Reply:
    """What the server plays: a part of the body may be kept back, and all of it delayed."""

    body: bytes = b""
    status: int = 200
    headers: dict = dataclasses.field(default_factory=dict)
    delay: float = 0.0
    promised: int | None = None
    drip: float = 0.0


def site(code, lat="51.5", lon="-0.1", opened="2000-01-01 00:00:00", closed=""):
    return {
        "@SiteCode": code,
        "@SiteName": f"Borough - {code}",
        "@SiteType": "Roadside",
        "@DateOpened": opened,
        "@DateClosed": closed,
        "@Latitude": lat,
        "@Longitude": lon,
        "@LatitudeWGS84": "6692543.79001",
        "@LongitudeWGS84": "-21810.7165116",
    }


def register(*sites):
    return Reply(json.dumps({"Sites": {"Site": list(sites)}}).encode())


def records(values, day="2022-02-19"):
    times = pd.date_range(day, periods=len(values), freq="h")
    return [
        {"@MeasurementDateGMT": f"{t:%Y-%m-%d %H:%M:%S}", "@Value": v}
        for t, v in zip(times, values, strict=True)
    ]


def raw(code, data, species="NO2"):
    inner = {"@SiteCode": code, "@SpeciesCode": species}
    if data is not None:
        inner["Data"] = data
    return json.dumps({"RawAQData": inner}).encode()


def hourly(code, first=0.0):
    """A day of 24 values, as texts."""
    return Reply(raw(code, records([f"{first + h:g}" for h in range(24)])))


class Server:
    """Plays the replies of each path in turn, the last of them for ever, and counts requests."""

    def __init__(self):
        self.register = register(site("AA1"), site("BB2", "51.4", "0.2"), site("CC3"))
        self.data, self.asked = {}, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                play(self, outer.reply(self.path))

            def log_message(self, *_):
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.handle_error = lambda *_: None
        self.base = f"http://127.0.0.1:{self.httpd.server_address[1]}/AirQuality"
        threading.Thread(target=self.httpd.serve_forever, args=(0.01,), daemon=True).start()

    def reply(self, path):
        if path == "/AirQuality/Information/MonitoringSites/GroupName=London/Json":
            return self.register
        code = re.search(r"/Data/SiteSpecies/SiteCode=(\w+)/", path)
        turns = self.data.get(code and code[1], [Reply(b"not here", 404)])
        return turns.pop(0) if len(turns) > 1 else turns[0]

    @property
    def counts(self):
        """Requests for data, by site."""
        codes = [re.search(r"SiteCode=(\w+)", path) for path in self.asked]
        return Counter(code[1] for code in codes if code)


def play(handler, reply):
    time.sleep(reply.delay)
    handler.send_response(reply.status)
    for key, value in reply.headers.items():
        handler.send_header(key, value)
    size = len(reply.body) if reply.promised is None else reply.promised
    handler.send_header("Content-Length", str(size))
    handler.end_headers()
    if not reply.drip:
        handler.wfile.write(reply.body)
        return
    for k in range(len(reply.body)):
        handler.wfile.write(reply.body[k : k + 1])
        time.sleep(reply.drip)


@pytest.fixture
def waits(monkeypatch):
    """The pauses that were asked for; none is slept through."""
    asked = []
    monkeypatch.setattr(_http, "wait", asked.append)
    return asked


@pytest.fixture
def server(waits, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    served = Server()
    for code in ("AA1", "BB2", "CC3"):
        served.data[code] = [hourly(code)]
    yield served
    served.httpd.shutdown()
    served.httpd.server_close()


def get(server, **changes):
    return laqn(**{"species": "NO2", **DAY, "base": server.base, **changes})


def test_all_records_come_as_hours_in_utc_at_places_in_degrees(server, waits):
    loaded = get(server)
    assert isinstance(loaded, Loaded)
    frame = loaded.frame
    assert list(frame) == ["site", "time", "end", "lat", "lon", "no2"]
    assert len(frame) == 72
    assert str(frame["time"].dt.tz) == str(frame["end"].dt.tz) == "UTC"
    assert ((frame["end"] - frame["time"]) == pd.Timedelta("1h")).all()
    for code, place in {"AA1": (51.5, -0.1), "BB2": (51.4, 0.2), "CC3": (51.5, -0.1)}.items():
        mine = frame[frame["site"] == code]
        np.testing.assert_array_equal(mine["no2"], np.arange(24.0))
        np.testing.assert_array_equal(
            mine["time"], pd.date_range("2022-02-19", periods=24, freq="h", tz="UTC")
        )
        assert set(zip(mine["lat"], mine["lon"], strict=True)) == {place}
    assert (loaded.units, loaded.missing, loaded.refused, loaded.notes) == ("ug/m3", 0, {}, ())
    assert loaded.source == server.base
    assert waits == [0.2] * 3
    assert server.asked[1] == (
        "/AirQuality/Data/SiteSpecies/SiteCode=AA1/SpeciesCode=NO2"
        "/StartDate=2022-02-19/EndDate=2022-02-20/Json"
    )


def test_empty_values_are_missing_and_negative_ones_are_kept(server):
    server.data["AA1"] = [Reply(raw("AA1", records(["1.5", "", "-0.7", None, "n/a", 4, "inf"])))]
    loaded = get(server, sites="AA1", end="2022-02-19 07:00")
    np.testing.assert_array_equal(
        loaded.frame["no2"], [1.5, np.nan, -0.7, np.nan, np.nan, 4, np.nan]
    )
    assert loaded.missing == 4
    assert loaded.notes == ("AA1: values that are no numbers count as missing: n/a, inf",)


def test_a_single_record_or_site_may_come_by_itself_and_a_mark_may_lead(server):
    body = json.dumps({"Sites": {"Site": site("AA1")}}).encode()
    server.register = Reply(BOM + body)
    server.data["AA1"] = [Reply(BOM + raw("AA1", records(["7.5"])[0]))]
    loaded = get(server, end="2022-02-19T01:00")
    assert loaded.frame["no2"].tolist() == [7.5]
    assert loaded.notes == ()


def test_the_period_is_half_open_and_may_have_a_zone(server):
    server.data["AA1"] = [Reply(raw("AA1", records([str(h) for h in range(49)])))]
    part = get(server, sites=["AA1"], start="2022-02-19 05:30", end="2022-02-20 02:00")
    np.testing.assert_array_equal(part.frame["no2"], np.arange(6.0, 26.0))
    assert server.asked[-1].endswith("/StartDate=2022-02-19/EndDate=2022-02-21/Json")
    dates = get(server, sites=["AA1"], start=datetime.date(2022, 2, 20), end="2022-02-21")
    np.testing.assert_array_equal(dates.frame["no2"], np.arange(24.0, 48.0))
    east = pd.Timestamp("2022-02-19 02:00", tz="Europe/Paris")
    zone = get(server, sites=["AA1"], start=east, end=east + pd.Timedelta("2h"))
    np.testing.assert_array_equal(zone.frame["no2"], [1.0, 2.0])


def test_hours_without_a_record_repeats_and_unreadable_times_are_said(server):
    data = records(["1", "2", "3"])
    again = {**data[1], "@Value": "2.5"}
    lost = {"@MeasurementDateGMT": "yesterday", "@Value": "9"}
    server.data["AA1"] = [Reply(raw("AA1", [*data, data[0], again, lost]))]
    loaded = get(server, sites="AA1")
    assert loaded.frame["no2"].tolist() == [1, 2, 2.5, 3]
    assert loaded.notes == (
        "AA1: records without a readable time are left out, at 'yesterday'",
        "AA1: 21 of the 24 hours have no record",
        "1 record came twice and is kept once",
        "1 hour has a second, different value; both are kept",
    )
    assert all(f"note: {note}" in str(loaded) for note in loaded.notes)


FAULTS = {
    "error": (Reply(b"oops", 500), "HTTP 500 Internal Server Error"),
    "busy": (Reply(b"", 429), "HTTP 429 Too Many Requests"),
    "cut": (Reply(hourly("BB2").body[:300]), "a reply of 300 bytes that is not whole JSON"),
    "short": (Reply(b"{}", promised=99), "a reply of 2 bytes where 99 were promised"),
    "slow": (Reply(hourly("BB2").body, delay=2.0), "no complete reply within 0.5 s"),
    "drip": (Reply(hourly("BB2").body, drip=0.05), "no complete reply within 0.5 s"),
    "empty": (Reply(b""), "an empty reply"),
    "blank": (Reply(b" \n"), "an empty reply"),
    "page": (Reply(b"<html>Maintenance</html>"), "a reply of 24 bytes that is not whole JSON"),
}


def patience(fault):
    return 0.5 if fault in ("slow", "drip") else 20.0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_loses_nothing(server, waits, fault):
    server.data["BB2"] = [FAULTS[fault][0]] * 2 + [hourly("BB2", 100.0)]
    loaded = get(server, timeout=patience(fault), pause=0)
    assert loaded.refused == {}
    assert loaded.missing == 0
    assert server.counts == {"AA1": 1, "BB2": 3, "CC3": 1}
    mine = loaded.frame[loaded.frame["site"] == "BB2"]
    np.testing.assert_array_equal(mine["no2"], np.arange(100.0, 124.0))
    assert len(loaded.frame) == 72
    assert waits == [0.5, 1.0]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_loses_its_site_alone_and_names_it(server, tmp_path, fault):
    reply, reason = FAULTS[fault]
    server.data["BB2"] = [reply]
    loaded = get(server, timeout=patience(fault), retries=2, cache=tmp_path)
    assert loaded.refused == {"BB2": f"{reason}, 3 times"}
    assert server.counts == {"AA1": 1, "BB2": 3, "CC3": 1}
    assert sorted(set(loaded.frame["site"])) == ["AA1", "CC3"]
    assert len(loaded.frame) == 48
    assert f"refused: 1 site\n  BB2: {reason}, 3 times" in str(loaded)
    assert len(list(tmp_path.iterdir())) == 3


OTHERS = {
    "gone": (Reply(b"no", 404), "HTTP 404 Not Found"),
    "list": (Reply(b"[]"), "expected an object 'RawAQData', got list"),
    "other": (Reply(b'{"Message": "x"}'), r"'RawAQData', got the keys \['Message'\]"),
    "null": (Reply(b'{"RawAQData": null}'), "expected an object 'RawAQData'"),
    "text": (Reply(raw("BB2", "none")), "expected a list, got 'none'"),
    "record": (Reply(raw("BB2", [{"@Value": "1"}])), r"without \['@MeasurementDateGMT'\]"),
    "site": (hourly("AA1"), "the reply is of NO2 at AA1, not of NO2 at BB2"),
    "nothing": (Reply(raw("BB2", None)), "no records of NO2 in this period"),
    "none": (Reply(raw("BB2", [])), "no records of NO2 in this period"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_would_come_again_is_asked_for_once(server, case):
    reply, reason = OTHERS[case]
    server.data["BB2"] = [reply]
    loaded = get(server)
    assert list(loaded.refused) == ["BB2"]
    assert re.search(reason, loaded.refused["BB2"])
    assert server.counts["BB2"] == 1
    assert len(loaded.frame) == 48


def test_the_register_says_which_sites_are_asked_for(server):
    server.register = register(
        site("AA1"),
        site("BB2", closed="2019-05-01 00:00:00"),
        site("CC3", opened="2022-02-20 00:00:00"),
        site("DD4", lat="6692543.79", lon="-21810.7"),
        site("EE5", lat=""),
        {"@SiteCode": "FF6"},
    )
    loaded = get(server)
    assert server.counts == {"AA1": 1}
    nowhere = "the register has no coordinates of it in degrees"
    assert loaded.refused == {
        "BB2": "not open in this period",
        "CC3": "not open in this period",
        **dict.fromkeys(("DD4", "EE5", "FF6"), nowhere),
    }
    assert f"refused: 5 sites\n  BB2, CC3: not open in this period\n  DD4, EE5, FF6: {nowhere}" in (
        str(loaded)
    )
    named = get(server, sites=["bb2", "BB2", "ZZ9"])
    assert sorted(set(named.frame["site"])) == ["BB2"]
    assert named.refused == {"ZZ9": "not in the register of the group London"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b"", 503), "HTTP 503 Service Unavailable, 2 times"),
        (Reply(b"", 404), "HTTP 404 Not Found"),
        (Reply(b'{"Sites": {"Site": []}}'), "the register lists no sites"),
        (Reply(b'{"Sites": {"Si'), "14 bytes that is not whole JSON, 2 times"),
    ],
)
def test_without_a_register_there_is_an_error_that_says_so(server, reply, reason):
    server.register = reply
    with pytest.raises(FetchError, match=rf"register of sites at http.*Json was not.*{reason}. Ch"):
        get(server, retries=1)
    assert server.counts == {}


def test_if_no_site_gives_values_the_error_has_all_reasons(server):
    server.data = {"AA1": [Reply(b"", 500)]}
    with pytest.raises(OSError, match="none of the 3 sites gave NO2 from 2022-02-19") as error:
        get(server, retries=1)
    assert "AA1: HTTP 500 Internal Server Error, 2 times; BB2, CC3: HTTP 404 Not Found." in str(
        error.value
    )


def test_a_refused_connection_is_an_error_after_the_last_try(waits, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{free.getsockname()[1]}/AirQuality"
    with pytest.raises(FetchError, match=r"the server was not reached: .*refused.*, 5 times"):
        laqn("NO2", **DAY, base=base, pause=0)
    assert waits == [0.5, 1.0, 2.0, 4.0]


def test_the_reason_is_that_of_the_request_and_not_of_what_went_before(server):
    server.data["AA1"] = [FAULTS["short"][0]]
    try:
        raise KeyError("before")
    except KeyError:
        loaded = get(server, sites=["AA1", "BB2"], retries=0)
    assert loaded.refused == {"AA1": FAULTS["short"][1]}


def test_without_requests_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(ImportError, match=r'Addresses need requests, .* pip install "mrgp\[io\]"'):
        laqn("NO2", **DAY)


def test_pauses_grow_to_a_bound(server, waits):
    server.data["AA1"] = [Reply(b"", 500)]
    loaded = get(server, sites=["AA1", "BB2"], retries=9, pause=0)
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert list(loaded.refused) == ["AA1"]


def test_a_server_that_is_down_is_not_worn_out(server):
    codes = [f"S{k}" for k in range(6)]
    server.register = register(*(site(code) for code in codes))
    server.data = {code: [Reply(b"", 500)] for code in codes} | {"S4": [hourly("S4")]}
    loaded = get(server, retries=2, pause=0)
    # After three that failed the fourth is tried once; the fifth answers, and patience is back.
    assert [server.counts[code] for code in codes] == [3, 3, 3, 1, 1, 3]
    assert sorted(loaded.refused) == ["S0", "S1", "S2", "S3", "S5"]


def test_a_refusal_is_an_answer_of_a_server_that_is_there(server):
    codes = [f"S{k}" for k in range(5)]
    server.register = register(*(site(code) for code in codes))
    server.data = {code: [Reply(b"", 500)] for code in codes} | {"S2": [Reply(b"", 404)]}
    server.data["S4"] = [hourly("S4")]
    get(server, retries=1, pause=0)
    assert [server.counts[code] for code in codes] == [2, 2, 1, 2, 1]


def test_the_server_says_when_to_come_back(server, waits):
    later = email.utils.format_datetime(
        datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=60), usegmt=True
    )
    server.data["AA1"] = [Reply(b"", 503, {"Retry-After": "7"}), hourly("AA1")]
    server.data["BB2"] = [Reply(b"", 429, {"Retry-After": later}), hourly("BB2")]
    server.data["CC3"] = [Reply(b"", 503, {"Retry-After": "soon"}), hourly("CC3")]
    assert len(get(server, pause=0).frame) == 72
    assert waits == [7.0, pytest.approx(59, abs=2), 0.5]
    server.data["AA1"] = [Reply(b"", 503, {"Retry-After": "3600"})]
    loaded = get(server, pause=0)
    reason = "HTTP 503 Service Unavailable; the server asks to come back in 3600 s"
    assert loaded.refused == {"AA1": reason}


def test_what_is_kept_is_not_asked_for_again(server, waits, tmp_path):
    folder = tmp_path / "new" / "cache"
    server.data["BB2"] = [Reply(hourly("BB2").body[:50]), Reply(b"", 404), hourly("BB2")]
    first = get(server, cache=folder)
    assert (len(server.asked), list(first.refused)) == (5, ["BB2"])
    second = get(server, cache=str(folder))
    assert (len(server.asked), second.refused) == (6, {})
    third = get(server, cache=folder)
    assert len(server.asked) == 6
    pd.testing.assert_frame_equal(second.frame, third.frame)
    assert len(list(folder.iterdir())) == 4
    get(server, cache=folder, species="NO2", end="2022-02-21", sites="AA1")
    assert len(server.asked) == 7


def test_a_damaged_file_of_the_cache_is_fetched_again(server, tmp_path):
    whole = get(server, cache=tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:40])
    again = get(server, cache=tmp_path)
    assert len(server.asked) == 8
    pd.testing.assert_frame_equal(whole.frame, again.frame)
    get(server, cache=tmp_path)
    assert len(server.asked) == 8


def test_days_that_are_not_over_are_not_kept(server, tmp_path):
    today = pd.Timestamp.now("UTC").floor("D")
    now = records(["3"], today.tz_localize(None))
    server.data = {code: [Reply(raw(code, now))] for code in ("AA1", "BB2", "CC3")}
    for _ in range(2):
        get(server, start=today, end=today + pd.Timedelta("1h"), cache=tmp_path)
    assert server.counts == {"AA1": 2, "BB2": 2, "CC3": 2}
    assert [f.name for f in tmp_path.iterdir() if "MonitoringSites" in f.name] == [
        f.name for f in tmp_path.iterdir()
    ]


def test_observations_are_means_over_hours_at_points(server):
    server.data["AA1"] = [Reply(raw("AA1", records(["1", "", "3"])))]
    loaded = get(server)
    o = loaded.observations()
    assert (o.name, o.task, o.units) == ("laqn", "no2", "ug/m3")
    assert o.support.inputs == ("time", "lon", "lat")
    assert o.support.flat == (False, True, True)
    assert len(o) == 51
    assert int((~o.observed).sum()) == loaded.missing == 1
    lower, upper = o.support.bounds
    np.testing.assert_array_equal(upper[:, 0] - lower[:, 0], 1.0)
    assert lower[0, 0] == pd.Timestamp("2022-02-19").timestamp() / 3600
    back = o.to_frame()
    np.testing.assert_array_equal(back["time_start"], loaded.frame["time"])
    np.testing.assert_allclose(back["lon"], loaded.frame["lon"], atol=1e-9)
    other = loaded.observations(name="sites", task="nitrogen")
    assert (other.name, other.task) == ("sites", "nitrogen")
    assert isinstance(mrgp.Dataset([o]), mrgp.Dataset)


def test_species_have_one_spelling_and_units(server):
    server.data["AA1"] = [Reply(raw("AA1", records(["1"]), "PM25"))]
    loaded = get(server, species="pm2.5", sites="AA1")
    assert (list(loaded.frame)[-1], loaded.units) == ("pm25", "ug/m3")
    server.data["AA1"] = [Reply(raw("AA1", records(["1"]), "CO"))]
    assert get(server, species="CO", sites="AA1").units == "mg/m3"
    server.data["AA1"] = [Reply(raw("AA1", records(["1"]), "XYZ"))]
    odd = get(server, species="XYZ", sites="AA1")
    assert odd.units is None
    assert "xyz in units that are not known" in str(odd)


def test_the_account_is_a_few_lines(server):
    loaded = get(server)
    assert repr(loaded) == "Loaded(laqn, no2: 72 hours at 3 sites)"
    assert str(loaded) == (
        "laqn, no2 in ug/m3: 72 hourly means at 3 sites, 2022-02-19 00:00 to 2022-02-20 00:00 UTC\n"
        f"source: {server.base}\n"
        "missing: 0 of 72 values\n"
        "refused: 0 sites"
    )


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"species": ""}, "species= is the name of one quantity, such as 'NO2'; got ''"),
        ({"species": ["NO2"]}, r"species= is the name of one quantity.*got \['NO2'\]"),
        ({"start": "19/02/2022"}, "start= is a date or a timestamp.*got '19/02/2022'"),
        ({"start": 2022}, "start= is a date or a timestamp.*got 2022"),
        ({"end": None}, "end= is a date or a timestamp.*got None"),
        ({"end": "2022-02-19"}, "end= must lie after start=.*got 2022-02-19 and 2022-02-19"),
        ({"base": "file:///etc"}, "base= is an address that begins with https://; got 'file"),
        ({"sites": []}, r"sites= is a list of codes.*got \[\]"),
        ({"sites": ["AA1", 3]}, r"sites= is a list of codes.*got \['AA1', 3\]"),
        ({"timeout": 0}, "timeout= must be positive, retries= and pause= not negative; got 0"),
        ({"retries": -1}, "got 30.0, -1 and 0.2"),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_anything_is_asked(monkeypatch, changes, text):
    def no_request(*_, **__):
        raise AssertionError("a request was sent")

    monkeypatch.setattr(Fetcher, "_once", no_request)
    with pytest.raises(ValueError, match=text):
        laqn(**{"species": "NO2", **DAY, **changes})


def test_a_cache_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cache=.*file is a file; give a folder"):
        laqn("NO2", **DAY, cache=tmp_path / "file")


def test_a_body_is_kept_whole_or_not_at_all(server, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    fetcher = Fetcher(cache=tmp_path)
    with pytest.raises(OSError, match="No space left"):
        fetcher.get(f"{server.base}/Data/SiteSpecies/SiteCode=AA1/", bytes)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_decides_what_is_asked_for_again(server):
    address = f"{server.base}/Data/SiteSpecies/SiteCode=AA1/"

    def cut(_):
        raise Incomplete("cut")

    def other(_):
        raise ValueError("other")

    with pytest.raises(FetchError, match=r"^cut, 5 times$"):
        Fetcher().get(address, cut)
    with pytest.raises(FetchError, match=r"^other$"):
        Fetcher().get(address, other)
    assert server.counts == {"AA1": 6}
    with pytest.raises(FetchError, match=r"^cut$"):
        Fetcher(retries=0).get(address, cut)


@pytest.fixture
def samples():
    path = Path(os.environ.get("MRGP_DATA") or "-") / "format_samples"
    if not path.is_dir():
        pytest.skip("MRGP_DATA names no folder of real data")
    return path


def test_recorded_bodies_are_read(server, samples):
    body = (samples / "laqn_api_SiteSpecies_MY1_NO_2022-12-10.json").read_bytes()
    listed = json.loads((samples / "laqn_api_MonitoringSites_one_site.json").read_bytes())
    known = listed["Sites"]["Site"][0]
    server.register = register(known, {**known, "@SiteCode": "MY1"})
    server.data["MY1"] = [Reply(BOM + body)]
    loaded = laqn("NO", "2022-12-10", "2022-12-11", base=server.base)
    assert loaded.refused == {"ME9": "HTTP 404 Not Found"}
    expected = [float(r["@Value"]) for r in json.loads(body)["RawAQData"]["Data"]]
    np.testing.assert_array_equal(loaded.frame["no"], expected)
    assert (len(expected), loaded.missing, loaded.notes) == (24, 0, ())
    assert loaded.frame["lat"].iloc[0] == float(known["@Latitude"])
    assert loaded.frame["lon"].iloc[0] == float(known["@Longitude"])


def test_recorded_days_of_all_sites_come_back_as_they_were(server, samples):
    """The values of three days of 2022, served in the format of the interface."""
    folder = samples.parent / "laqn_2022"
    places = pd.read_csv(folder / "laqn_site_metadata.csv", dtype=str, keep_default_na=False)
    table = pd.read_csv(
        folder / "window_no2_2022-02-19_to_21.csv", dtype=str, keep_default_na=False
    )
    server.register = register(*places.to_dict("records"))
    server.data = {}
    for code, rows in table.groupby("site"):
        data = [
            {"@MeasurementDateGMT": t, "@Value": v}
            for t, v in zip(rows["time"], rows["no2"], strict=True)
        ]
        server.data[code] = [Reply(b"", 500), Reply(raw(code, data))]
    loaded = get(server, end="2022-02-22", sites=list(server.data))
    assert loaded.refused == {}
    assert len(loaded.frame) == len(table)
    assert loaded.missing == (table["no2"] == "").sum()
    expected = table.sort_values(["site", "time"])
    np.testing.assert_array_equal(loaded.frame["site"], expected["site"])
    np.testing.assert_array_equal(
        loaded.frame["no2"], pd.to_numeric(expected["no2"], errors="coerce")
    )
    assert loaded.frame["lat"].between(51.2, 51.8).all()


def test_the_command_line_writes_what_came_and_says_what_did_not(server, tmp_path, capsys):
    server.data["CC3"] = [Reply(b"broken", 404)]
    out = tmp_path / "no2.csv"
    arguments = ["data", "laqn", "--species", "NO2", "--start", "2022-02-19", "--end", "2022-02-20"]
    assert command([*arguments, "--base", server.base, "--out", str(out)]) == 0
    written = pd.read_csv(out)
    assert written["site"].value_counts().to_dict() == {"AA1": 24, "BB2": 24}
    said = capsys.readouterr().out
    assert "CC3" in said
    assert f"wrote {out}" in said


ASKED = "/AirQuality/Data/SiteSpecies/SiteCode=AA1/"


def sent_to(server, location):
    server.data["AA1"] = [Reply(b"", 302, headers={"Location": location}), Reply(b"found")]
    return Fetcher().get(server.base.removesuffix("/AirQuality") + ASKED, bytes)


def test_a_server_may_send_on_to_itself(server):
    assert sent_to(server, ASKED) == b"found"


@pytest.mark.parametrize(
    "location",
    ["http://localhost:1/x", "ftp://127.0.0.1/x", "http://169.254.169.254/meta", "file:///etc/x"],
)
def test_a_server_may_send_to_no_other_place(server, location):
    with pytest.raises(FetchError, match=r"the server sends to .*, which is another place"):
        sent_to(server, location)
    assert server.counts["AA1"] == 1


def test_a_secure_address_stays_secure():
    assert _http._redirected("http://a.org/x", "https://a.org/y") == "https://a.org/y"
    for there in ("http://a.org/y", "https://b.org/y", "https://a.org:8443/y"):
        with pytest.raises(_http._Fault, match="another place"):
            _http._redirected("https://a.org/x", there)


def test_redirects_come_to_an_end(server):
    server.data["AA1"] = [Reply(b"", 302, headers={"Location": ASKED})]
    with pytest.raises(FetchError, match="more than 5 redirects"):
        Fetcher().get(server.base.removesuffix("/AirQuality") + ASKED, bytes)


def test_a_body_without_end_is_refused(server, monkeypatch):
    monkeypatch.setattr(_http, "LARGEST_BODY", 1 << 20)
    packed = gzip.compress(bytes(1 << 24))
    server.data["AA1"] = [Reply(packed, headers={"Content-Encoding": "gzip"})]
    with pytest.raises(FetchError, match="a reply of more than 1 MiB"):
        Fetcher().get(server.base.removesuffix("/AirQuality") + ASKED, bytes)
    assert server.counts["AA1"] == 1
