"""Data to report on."""

import numpy as np
import pandas as pd

import mrgp
from browsing import missing

HOSTILE = "sat <script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
START = "2022-02-19"


def london(seed=0):
    """Simulate hourly sensors and cells in degrees, with a source of an unfriendly name."""
    rng = np.random.default_rng(seed)
    sites, hours = 6, pd.date_range(START, periods=4, freq="h")
    frame = pd.DataFrame({"lon": rng.uniform(-0.3, 0.1, sites)})
    frame["lat"] = rng.uniform(51.4, 51.6, sites)
    frame = frame.merge(pd.DataFrame({"time": hours}), how="cross")
    frame["no2"] = 30 + 5 * frame["time"].dt.hour + 40 * frame["lon"] + rng.normal(0, 1, len(frame))
    frame.loc[2, "no2"] = np.nan
    sensors = mrgp.from_frame(
        frame, ["lon", "lat", "time"], "no2", crs="EPSG:4326", name="laqn", units="µg/m³"
    )
    edges = np.array([[-0.3, 51.4], [-0.1, 51.4], [-0.3, 51.5], [-0.1, 51.5]])
    cells = pd.DataFrame(edges, columns=["lon_lower", "lat_lower"])
    cells["lon_upper"], cells["lat_upper"] = cells["lon_lower"] + 0.2, cells["lat_lower"] + 0.1
    cells = cells.assign(time_start=pd.Timestamp(START), time_end=pd.Timestamp(f"{START}T04:00"))
    cells["no2"] = 33.0 + np.arange(4)
    sat = mrgp.from_frame(
        cells,
        y="no2",
        start=["lon_lower", "lat_lower", "time_start"],
        end=["lon_upper", "lat_upper", "time_end"],
        inputs=("lon", "lat", "time"),
        crs="EPSG:4326",
        name=HOSTILE,
        units="µg/m³",
    )
    return frame, mrgp.Dataset([sensors, sat])


COAST = (1.0, 1.6, 51.0, 51.4)


def coast(seed=1):
    """Simulate two days at five sites and in four cells over the coast of Kent, every 3 hours.

    Values follow the time of the day; the cells have no units. Returns values, data, site names.
    """
    rng = np.random.default_rng(seed)
    times = pd.date_range(START, periods=16, freq="3h")
    west, _, south, _ = COAST
    sites = pd.DataFrame({"site": ["Ash", "Bay", "Cliff", "Dune", "Elm & <Oak>"]})
    sites["lon"], sites["lat"] = [1.1, 1.2, 1.35, 1.4, 1.5], [51.1, 51.3, 51.15, 51.35, 51.2]
    frame = sites.merge(pd.DataFrame({"time": times}), how="cross")

    def field(lon, lat, time):
        return 25 + 20 * np.sin(2 * np.pi * time.dt.hour / 24) + 30 * (lon - 1.3)

    frame["no2"] = field(frame["lon"], frame["lat"], frame["time"]) + rng.normal(0, 2, len(frame))
    sensors = mrgp.from_frame(
        frame, ["lon", "lat", "time"], "no2", crs="EPSG:4326", name="laqn", units="ug/m3"
    )
    corners = pd.DataFrame(
        {"lon_lower": [west, 1.3, west, 1.3], "lat_lower": [south] * 2 + [51.2] * 2}
    )
    cells = corners.merge(pd.DataFrame({"time_start": times}), how="cross")
    cells["lon_upper"], cells["lat_upper"] = cells["lon_lower"] + 0.3, cells["lat_lower"] + 0.2
    cells["time_end"] = cells["time_start"]
    cells["no2"] = 5 + 0.5 * field(cells["lon_lower"] + 0.15, south, cells["time_start"])
    model = mrgp.from_frame(
        cells,
        y="no2",
        start=["lon_lower", "lat_lower", "time_start"],
        end=["lon_upper", "lat_upper", "time_end"],
        inputs=("lon", "lat", "time"),
        crs="EPSG:4326",
        name="cams",
    )
    return frame, mrgp.Dataset([sensors, model]), sites


def degrees(east, north, hours):
    """Return a grid of points in degrees and dates."""
    mesh = np.meshgrid(east, north, hours, indexing="ij")
    columns = dict(zip(("lon", "lat", "time"), (part.ravel() for part in mesh), strict=True))
    return mrgp.from_frame(pd.DataFrame(columns), ["lon", "lat", "time"], crs="EPSG:4326")


def hours():
    """Return values and means of windows over one input."""
    x = np.linspace(0.0, 6.0, 25)
    seen = mrgp.points(x[:, None], inputs="hour")
    windows = mrgp.intervals(x[:-6:6], x[6::6], inputs="hour")
    return mrgp.Dataset(
        [
            mrgp.Observations(seen, np.sin(x), name="s", units="m"),
            mrgp.Observations(windows, np.ones(4), name="w", units="m"),
        ]
    )


def biased():
    """Return a target, and a source that reports it on another scale."""
    x = np.linspace(0.0, 6.0, 25)
    target = mrgp.Observations(mrgp.points(x[::2, None]), np.sin(x[::2]), name="target")
    coarse = mrgp.Observations(mrgp.points(x[:, None]), 0.5 * np.sin(x) + 1, name="coarse")
    return mrgp.Dataset([target, coarse])


def amiss(shown):
    """Return what axe-core finds amiss on a page that was opened for it, and where."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python is not installed")

    told = Axe().run(shown.page).response["violations"]
    return {v["id"]: [n["target"] for n in v["nodes"]] for v in told}
