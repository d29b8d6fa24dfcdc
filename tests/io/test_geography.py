"""Geographic data: the same kilometres from any CRS, and the same degrees back."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp
from mrgp.io.geography import kilometres_per_degree, local_axes
from mrgp.supports import Boxes, Points

geopandas = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")
pyproj = pytest.importorskip("pyproj")

QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
RNG = np.random.default_rng(0)
LON, LAT = RNG.uniform(-0.5, 0.3, 20).round(6), RNG.uniform(51.3, 51.7, 20).round(6)
VALUES = 20 + 5 * LON - 3 * (LAT - 51.5)
# The datum shift of the British grid is inverted by PROJ to a millimetre.
TOLERANCE = {4326: 1e-12, 27700: 2e-6, 3857: 1e-9, 4258: 1e-9}


def points(crs=4326):
    frame = geopandas.GeoDataFrame(
        {"no2": VALUES}, geometry=geopandas.points_from_xy(LON, LAT), crs=4326
    )
    return frame.to_crs(crs)


def districts(crs=4326):
    corners = [(0.0, 51.4), (0.1, 51.4), (0.1, 51.5), (0.0, 51.5)]
    shapes = [
        shapely.Polygon(corners),
        shapely.MultiPolygon(
            [shapely.box(0.1, 51.4, 0.2, 51.5), shapely.box(0.3, 51.4, 0.4, 51.6)]
        ),
    ]
    frame = geopandas.GeoDataFrame({"no2": [20.0, 30.0]}, geometry=shapes, crs=4326)
    return frame.to_crs(crs)


@pytest.mark.parametrize("latitude", [-75.0, -33.9, 0.0, 51.5, 78.0])
def test_a_degree_is_as_long_as_on_the_ellipsoid(latitude):
    geod = pyproj.Geod(ellps="WGS84")
    step = 1e-3
    _, _, across = geod.inv(0.0, latitude, step, latitude)
    _, _, along = geod.inv(0.0, latitude - step / 2, 0.0, latitude + step / 2)
    expected = np.array([across, along]) / 1000 / step
    np.testing.assert_allclose(kilometres_per_degree(latitude), expected, rtol=1e-7)


def test_distances_are_as_accurate_as_documented():
    support = mrgp.from_frame(points(), geometry="geometry")
    geod = pyproj.Geod(ellps="WGS84")
    first, second = np.triu_indices(20, 1)
    _, _, metres = geod.inv(LON[first], LAT[first], LON[second], LAT[second])
    kilometres = np.linalg.norm(support.x[first] - support.x[second], axis=1)
    centre = 0.5 * (LAT.min() + LAT.max())
    off = np.radians(np.abs(LAT - centre).max()) * np.tan(np.radians(centre))
    assert np.max(np.abs(kilometres / (metres / 1000) - 1)) < 1.05 * off


@pytest.mark.parametrize("crs", TOLERANCE)
def test_points_are_the_same_from_any_crs(crs):
    o = mrgp.from_frame(points(crs), y="no2", geometry="geometry")
    assert isinstance(o.support, Points)
    assert o.support.inputs == ("lon", "lat")
    plain = pd.DataFrame({"lat": LAT, "no2": VALUES, "lon": LON})
    from_columns = mrgp.from_frame(plain, ["lon", "lat"], "no2", crs="EPSG:4326")
    np.testing.assert_allclose(o.support.x, from_columns.support.x, rtol=0, atol=TOLERANCE[crs])
    back = o.to_frame()
    np.testing.assert_allclose(back["lon"], LON, rtol=0, atol=max(TOLERANCE[crs] / 50, 1e-10))
    np.testing.assert_allclose(back["lat"], LAT, rtol=0, atol=max(TOLERANCE[crs] / 50, 1e-10))


def test_degrees_come_back_exactly():
    plain = pd.DataFrame({"lon": LON, "lat": LAT, "no2": VALUES})
    back = mrgp.from_frame(plain, ["lon", "lat"], "no2", crs=4326).to_frame()
    pd.testing.assert_frame_equal(back, plain, check_exact=True)


def test_projected_columns_are_the_same_as_degrees():
    east = points(27700).geometry
    plain = pd.DataFrame({"x": east.x, "y": east.y, "no2": VALUES})
    o = mrgp.from_frame(plain, ["x", "y"], "no2", crs="EPSG:27700", inputs=("lon", "lat"))
    expected = mrgp.from_frame(points(), geometry="geometry")
    np.testing.assert_allclose(o.support.x, expected.x, rtol=0, atol=2e-6)


@pytest.mark.parametrize("crs", TOLERANCE)
def test_polygons_are_the_same_from_any_crs(crs):
    o = mrgp.from_frame(districts(crs), y="no2", geometry="geometry", kind="sum")
    expected = mrgp.from_frame(districts(), geometry="geometry", kind="sum")
    assert o.support.inputs == ("lon", "lat")
    geod = pyproj.Geod(ellps="WGS84")
    areas = [abs(geod.geometry_area_perimeter(s)[0]) / 1e6 for s in districts().geometry]
    np.testing.assert_allclose(expected.total, areas, rtol=2e-3)
    np.testing.assert_allclose(o.support.total, expected.total, rtol=1e-6)
    np.testing.assert_allclose(
        o.support.moment / o.support.total[:, None],
        expected.moment / expected.total[:, None],
        atol=1e-5,
    )
    np.testing.assert_allclose(o.support.bounds, expected.bounds, rtol=0, atol=TOLERANCE[crs])


def test_polygons_come_back_with_their_outlines():
    frame = districts()
    back = mrgp.from_frame(frame, y="no2", geometry="geometry", spacing=2.0).to_frame()
    assert isinstance(back, geopandas.GeoDataFrame)
    assert back.crs == frame.crs
    assert list(back) == ["no2", "geometry"]
    assert back.geometry.geom_equals_exact(frame.geometry, 1e-9).all()


def test_polygons_times_windows():
    start = pd.Series(pd.to_datetime(["2018-06-01", "2018-07-01"])).dt.as_unit("ns")
    frame = districts().assign(start=start, end=start + pd.Timedelta("30D"))
    o = mrgp.from_frame(
        frame, y="no2", geometry="geometry", start="start", end="end", time_unit="D"
    )
    assert o.support.inputs == ("lon", "lat", "time")
    assert [axis.quantity for axis in o.support.axes] == ["longitude", "latitude", "time"]
    lower, upper = o.support.bounds
    np.testing.assert_array_equal(upper[:, 2] - lower[:, 2], [30, 30])
    back = o.to_frame()
    assert list(back) == ["time_start", "time_end", "no2", "geometry"]
    pd.testing.assert_series_equal(back["time_start"], start, check_names=False)
    assert back.geometry.geom_equals_exact(frame.geometry, 1e-9).all()
    first = mrgp.from_frame(
        frame,
        geometry="geometry",
        start="start",
        end="end",
        time_unit="D",
        inputs=("time", "lon", "lat"),
    )
    assert first.inputs == ("time", "lon", "lat")
    np.testing.assert_array_equal(first.bounds[0][:, [1, 2, 0]], lower)
    with pytest.raises(
        ValueError, match="the inputs of polygons stay together, 'lon' before 'lat'"
    ):
        mrgp.from_frame(
            frame, geometry="geometry", start="start", end="end", inputs=("lat", "lon", "time")
        )


def test_points_times_windows_are_boxes_with_flat_sides():
    start = pd.date_range("2018-06-01", periods=20, freq="h")
    frame = points().assign(start=start, end=start + pd.Timedelta("1h"))
    support = mrgp.from_frame(frame, geometry="geometry", start="start", end="end")
    assert isinstance(support, Boxes)
    assert support.flat == (True, True, False)
    assert support.inputs == ("lon", "lat", "time")


def test_boxes_in_degrees_stay_boxes():
    frame = pd.DataFrame({"lon_min": [0.0, 0.1], "lat_min": 51.4, "y": 1.0})
    frame = frame.assign(lon_max=frame.lon_min + 0.1, lat_max=frame.lat_min + 0.1)
    ends = {"start": ["lon_min", "lat_min"], "end": ["lon_max", "lat_max"]}
    o = mrgp.from_frame(frame, y="y", crs="EPSG:4326", **ends)
    assert o.support.inputs == ("lon", "lat")
    across, along = kilometres_per_degree(51.45)
    width = np.asarray(o.support.upper - o.support.lower)
    np.testing.assert_allclose(width, [[0.1 * across, 0.1 * along]] * 2, rtol=1e-12)
    back = o.to_frame()
    np.testing.assert_array_equal(back["lon_upper"], frame["lon_max"])
    with pytest.raises(ValueError, match="boxes of the CRS 'EPSG:27700' are not boxes in degrees"):
        mrgp.from_frame(
            frame.rename(columns=lambda c: c.replace("lon", "x").replace("lat", "y")),
            y="y",
            crs="EPSG:27700",
            start=["x_min", "y_min"],
            end=["x_max", "y_max"],
        )


def test_geometries_without_a_crs_are_as_they_are():
    bare = points().set_crs(None, allow_override=True)
    for support in (
        mrgp.from_frame(bare, geometry="geometry"),
        mrgp.from_frame(points(), geometry="geometry", crs=False),
    ):
        assert support.inputs == ("x", "y")
        assert support.axes is None
        np.testing.assert_array_equal(support.x, np.column_stack([LON, LAT]))
    told = mrgp.from_frame(bare, geometry="geometry", crs="EPSG:4326")
    np.testing.assert_array_equal(told.x, mrgp.from_frame(points(), geometry="geometry").x)


def test_wide_data_may_be_projected_first():
    wide = geopandas.GeoDataFrame(
        geometry=geopandas.points_from_xy([-5.0, 15.0], [45.0, 55.0]), crs=4326
    ).to_crs(3035)
    support = mrgp.from_frame(wide, geometry="geometry", crs=False)
    np.testing.assert_array_equal(support.x, np.column_stack([wide.geometry.x, wide.geometry.y]))


def test_sources_about_different_centres_fall_into_place():
    west, east = points()[LON < 0], points(3857)[LON >= 0]
    data = mrgp.Dataset(
        [
            mrgp.from_frame(west, y="no2", geometry="geometry", name="west"),
            mrgp.from_frame(east, y="no2", geometry="geometry", name="east"),
        ]
    )
    first, second = data.supports
    assert first.axes == second.axes == data.axes
    x, y = data.axes
    np.testing.assert_allclose(second.x[:, 0], (LON[LON >= 0] - x.origin) / x.step, atol=1e-9)
    np.testing.assert_allclose(second.x[:, 1], (LAT[LON >= 0] - y.origin) / y.step, atol=1e-9)
    np.testing.assert_allclose(data["east"].to_frame()["lon"], LON[LON >= 0], atol=1e-9)


def test_sources_far_apart_are_refused_by_datasets_and_predictions():
    def source(name, lon, lat):
        frame = pd.DataFrame({"lon": [lon, lon + 0.1], "lat": [lat, lat + 0.1], "y": [1.0, 2.0]})
        return mrgp.from_frame(frame, ["lon", "lat"], "y", crs=4326, name=name)

    london, near = source("a", 0.0, 51.0), source("b", 2.3, 48.8)
    mrgp.Dataset([london, near])
    for far, text in (
        (source("b", 40.0, 51.0), "'lon' lies up to 40.1 degrees of longitude away from 0.05"),
        (source("b", 0.0, 64.0), "'lat' lies up to 13 degrees of latitude away from 51.05"),
    ):
        with pytest.raises(
            ValueError,
            match=f"source 'b', task 'y': the input {text}, .*off by 25% at most.* crs=False; or"
            " choose a smaller area, or give the widest source first",
        ):
            mrgp.Dataset([london, far])
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([london]), optimiser=QUICK)
    mrgp.predict(fit, near.support)
    with pytest.raises(ValueError, match="predict: the input 'lat' lies up to 31 degrees"):
        mrgp.predict(fit, source("b", 0.0, 20.0).support)


def test_wide_areas_are_measured_in_a_projection_that_is_named():
    lon, lat = np.array([-84.3, -80.0, -75.5, -78.0]), np.array([33.9, 36.6, 36.0, 34.5])
    frame = pd.DataFrame({"lon": lon, "lat": lat, "y": [1.0, 2.0, 4.0, 3.0]})
    seen = mrgp.from_frame(frame, ["lon", "lat"], "y", crs=4326)
    said = "span 8.8 degrees of longitude and 2.7 of latitude.* equidistant cylindrical projection"
    with pytest.warns(UserWarning, match=f"{said}.* parallel 35.25: .* off by up to 1.7 %"):
        fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=QUICK)
    assert any("equidistant cylindrical" in text for text in fit.warnings)
    first, second = np.triu_indices(4, 1)
    _, _, metres = pyproj.Geod(ellps="WGS84").inv(lon[first], lat[first], lon[second], lat[second])
    flat = np.linalg.norm(seen.support.x[first] - seen.support.x[second], axis=1)
    np.testing.assert_allclose(flat, metres / 1000, rtol=0.018)
    back = mrgp.predict(fit, seen.support).to_frame()
    np.testing.assert_allclose(back[["lon", "lat"]], frame[["lon", "lat"]], atol=1e-9)


def test_fit_on_sensors_and_predict_on_a_grid_about_another_centre():
    data = mrgp.Dataset([mrgp.from_frame(points(27700), y="no2", geometry="geometry")])
    fit = mrgp.fit(mrgp.MRGP(mean="linear"), data, optimiser=QUICK)
    grid = xr.Dataset(
        coords={
            "lon": ("lon", [359.95, 0.05, 0.15], {"units": "degrees_east"}),
            "lat": ("lat", [51.6, 51.5], {"units": "degrees_north"}),
        }
    )
    support = mrgp.from_grid(grid)
    maps = mrgp.predict(fit, support).to_grid()
    np.testing.assert_array_equal(maps["lon"], [-0.05, 0.05, 0.15])
    np.testing.assert_array_equal(maps["lat"], [51.6, 51.5])
    by_hand = pd.DataFrame({"lon": [0.05], "lat": [51.6]})
    cell = {"start": ["lon_start", "lat_start"], "end": ["lon_end", "lat_end"]}
    by_hand = by_hand.assign(lon_start=0.0, lon_end=0.1, lat_start=51.55, lat_end=51.65)
    one = mrgp.predict(fit, mrgp.from_frame(by_hand, crs=4326, **cell))
    np.testing.assert_allclose(maps["mean"].sel(lon=0.05, lat=51.6), one.mean[0], rtol=1e-8)


def test_the_middle_is_found_across_the_date_line():
    east, _ = local_axes([179.9, -179.9], [0.0, 0.1], "here")
    assert abs(east.origin) == 180.0
    frame = pd.DataFrame({"lon": [179.9, -179.9], "lat": [0.0, 0.1], "y": [1.0, 2.0]})
    o = mrgp.from_frame(frame, ["lon", "lat"], "y", crs=4326)
    np.testing.assert_allclose(np.abs(np.diff(o.support.x[:, 0])), 0.2 * 111.319, rtol=1e-4)
    pd.testing.assert_frame_equal(o.to_frame(), frame)
    other = mrgp.from_frame(frame[:1].assign(lon=-179.5), ["lon", "lat"], "y", crs=4326, name="b")
    joined = mrgp.Dataset([o, other]).supports[1]
    assert np.all(np.abs(joined.x) < 100)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("frame", "options", "error", "text"),
    [
        (
            points().assign(geometry=shapely.points(LON * 300, LAT)).set_geometry("geometry"),
            {"crs": "EPSG:4326"},
            ValueError,
            "the data span .* degrees of longitude .* 60 degrees of longitude.* with crs=False",
        ),
        (
            points().set_geometry(shapely.points(LON, LAT + 35), crs=4326),
            {},
            ValueError,
            "about latitude 86.5. Kilometres about .* up to 80 degrees from the equator",
        ),
        (
            pd.DataFrame({"lon": LAT * 2, "lat": LON - 100}),
            {"x": ["lon", "lat"], "geometry": None, "crs": 4326},
            ValueError,
            "are not on Earth. Look for swapped columns",
        ),
        (
            points(),
            {"crs": "EPSG:27700"},
            ValueError,
            "has the CRS EPSG:4326, but crs='EPSG:27700'",
        ),
        (
            points().set_crs(None, allow_override=True),
            {"crs": "EPSG:0"},
            ValueError,
            'crs= takes a CRS such as "EPSG:4326"; got',
        ),
        (
            points().set_geometry([None, *points().geometry[1:]], crs=4326),
            {},
            ValueError,
            "column 'geometry' is missing or empty in 1 of 20 rows, first in row 0",
        ),
        (
            pd.concat([points(), districts()]),
            {},
            ValueError,
            "must hold points alone or polygons alone; got 20 Point, 1 Polygon, 1 MultiPolygon",
        ),
        (pd.DataFrame({"geometry": [1.0]}), {}, TypeError, "must hold geometries; got float64"),
    ],
)
def test_wrong_geographies_are_named(frame, options, error, text):
    with pytest.raises(error, match=text):
        mrgp.from_frame(frame, **({"geometry": "geometry"} | options))
