"""Data to report on."""

import numpy as np
import pandas as pd

import mrgp

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
