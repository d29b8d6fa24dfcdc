"""Maps in plain numbers: why they have no coast, and where on Earth a CRS says they are."""

import json
import re

import numpy as np
import pytest

import mrgp
from mrgp.report import write_report
from mrgp.report.backdrop import backdrop, extent_of
from mrgp.report.ground import Ground, unknown
from mrgp.report.headline import title_of
from mrgp.report.layout import Grid, Layout, default_grid
from report.conftest import QUICK

PLANE = Layout(("x", "y"), (None, None), (0, 1), None, ())
CONTENT = re.compile(r'<script type="application/json" id="content">(.*?)</script>', re.DOTALL)
DOVER = (1.343, 51.129)


def kent(scale):
    """Return a few places of Kent in the British grid, in metres or in kilometres."""
    x = np.array([[610.0, 120.0], [640.0, 120.0], [610.0, 170.0], [640.0, 170.0], [625.0, 150.0]])
    names = {"name": "tubes", "task": "no2", "units": "ug/m3"}
    places = mrgp.points(scale * x, inputs=("x", "y"))
    return mrgp.Dataset([mrgp.Observations(places, np.arange(5.0), **names)])


@pytest.mark.parametrize(("crs", "scale"), [("EPSG:27700", 1000.0), ("EPSG:27700 in km", 1.0)])
def test_a_crs_puts_the_coast_under_a_map_of_plain_numbers(crs, scale):
    data = kent(scale)
    ground = Ground.of(crs, PLANE)
    grid = Grid.of(default_grid(PLANE, data), PLANE)
    box = extent_of(grid, ground)
    # The corners of the extent, by an independent reading of the grid references.
    np.testing.assert_allclose(box, (0.98, 1.46, 50.92, 51.40), atol=0.03)
    drawn = backdrop(box, ground)
    line = next(line for line in drawn["lines"] if line["kind"] == "coast")
    x, y = (np.array([v for v in line[side] if v is not None]) / scale for side in "xy")
    # Dover's cliffs are at TR 33 41.
    assert np.hypot(x - 633.5, y - 141.0).min() < 2.0
    assert len(line["x"]) == len(line["y"])
    assert [v is None for v in line["x"]] == [v is None for v in line["y"]]
    assert unknown(PLANE, ground) == ""
    lon, lat = ground.degrees(*ground.plane(*np.array([DOVER]).T))
    np.testing.assert_allclose([lon[0], lat[0]], DOVER, atol=1e-6)
    assert ground.km * scale == pytest.approx(1.0)


def test_a_map_of_x_and_y_without_a_crs_says_why_it_has_no_coast():
    said = unknown(PLANE, None)
    assert said.startswith("There is no coast on this map: x and y are plain numbers")
    assert "--crs" in said
    assert unknown(Layout(("depth", "time"), (None, None), (0, 1), None, ()), None) == ""
    assert unknown(Layout(("x",), (None,), (0,), None, ()), None) == ""


def test_the_title_of_a_plane_has_its_numbers_or_its_degrees():
    data = kent(1.0)
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    layout = Layout.of(fit)
    plain = title_of(fit, ("no2",), data, layout, None)
    assert plain == "NO2, 5 sites, x 610 to 640 and y 120 to 170"
    ground = Ground.of("EPSG:27700 in km", layout)
    box = extent_of(Grid.of(default_grid(layout, data), layout), ground)
    known = title_of(fit, ("no2",), data, layout, box, ground)
    assert known == "NO2, 5 sites, 0.988 to 1.45° E, 50.9 to 51.4° N"


@pytest.mark.parametrize(
    ("crs", "said"),
    [
        ("EPSG:4326", "takes a projected CRS; EPSG:4326 is in degrees"),
        ("the moon", 'crs= takes a CRS such as "EPSG:27700"'),
    ],
)
def test_a_crs_that_says_nothing_of_a_plane_is_refused(crs, said):
    with pytest.raises(ValueError, match=said):
        Ground.of(crs, PLANE)


def test_a_map_in_degrees_needs_no_crs(fits):
    with pytest.raises(ValueError, match=r"\('lon', 'lat'\) of this page need none"):
        Ground.of("EPSG:27700", Layout.of(fits.london))


@pytest.mark.thorough
def test_the_page_of_a_plane_has_its_coast_and_measures_in_km(plotly, tmp_path):
    data = kent(1.0)
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    for crs in (None, "EPSG:27700 in km"):
        path = tmp_path / "plane.html"
        write_report(fit, path, crs=crs)
        found = json.loads(CONTENT.search(path.read_text()).group(1))
        told = [words for words in found["notices"] if "no coast" in words]
        assert bool(told) == (crs is None)
        assert (found["backdrop"] is None) == (crs is None)
        assert found["grid"].get("km") == (None if crs is None else [1.0, 1.0])
        assert found["grid"]["x"]["label"] == ("x" if crs is None else "x (km)")
