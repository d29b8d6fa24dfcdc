"""What goes into a page: grids, mixtures, packed numbers, and what is said of a fit."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mrgp
from mrgp.prediction import Prediction
from mrgp.report import fields, write_report
from mrgp.report.layout import Grid, Layout
from mrgp.report.packing import merged, quantised, unpacked
from mrgp.report.page import plotly as library
from report.cases import HOSTILE

CONTENT = re.compile(r'<script type="application/json" id="content">(.*?)</script>', re.DOTALL)


def contents(path):
    return json.loads(CONTENT.search(path.read_text()).group(1))


def predicted(mixture):
    support = mrgp.points(np.zeros((mixture[0].shape[1], 1)))
    return Prediction(support, "no2", None, None, *mixture)


@given(st.integers(2, 12), st.integers(1, 6), st.integers(0, 10**6))
def test_merging_keeps_the_mean_and_the_variance(many, few, seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(many), 5).T
    means, variances = 3 * rng.standard_normal((many, 5)), rng.gamma(2.0, 1.0, (many, 5))
    found = merged((weights, means, variances), few)
    assert found[0].shape == (min(many, few), 5)

    def moments(w, m, v):
        mean = (w * m).sum(0)
        return mean, (w * (v + (m - mean) ** 2)).sum(0)

    np.testing.assert_allclose(found[0].sum(0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        moments(*found), moments(weights, means, variances), rtol=1e-9, atol=1e-9
    )


def test_merging_keeps_modes_that_are_apart():
    rng = np.random.default_rng(0)
    means = np.concatenate([rng.normal(0, 0.1, (20, 1)), rng.normal(10, 0.1, (20, 1))])
    weights, variances = np.full((40, 1), 1 / 40), np.ones((40, 1))
    two = merged((weights, means, variances), 2)
    for threshold in (-1.0, 0.0, 5.0, 10.5):
        exact = predicted((weights, means, variances)).exceedance(threshold)
        np.testing.assert_allclose(predicted(two).exceedance(threshold), exact, atol=2e-3)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=50))
def test_numbers_of_16_bits_are_off_by_half_a_step_at_most(values):
    span = max(values) - min(values)
    np.testing.assert_allclose(unpacked(quantised(values)), values, atol=0.51 * span / 65535)
    relative = np.log(max(values) / min(values)) / 65535
    log = unpacked(quantised(values, log=True))
    np.testing.assert_allclose(log, values, rtol=0.51 * relative + 1e-12)


def test_a_mixture_over_many_cells_is_sent_with_as_many_components_as_there_is_room_for(plotly):
    cells, rng = 720_000, np.random.default_rng(0)
    count = fields._components(cells, fields.BUDGET)
    assert count == 2
    means = np.stack([np.zeros(cells), rng.uniform(1, 5, cells)])
    mixture = predicted((np.full((2, cells), 0.5), means, np.ones((2, cells))))
    at = np.full((1, cells), 1.0)
    drawn = fields.Drawn(mixture, 60, None, at, mixture.exceedance(1.0)[None], {})
    found = fields.payload(drawn)
    assert len(json.dumps(found)) + len(library()) < 14_600_000
    assert found["error"] < 1e-4


def test_what_is_said_of_the_data_is_so(fits, plotly, tmp_path):
    path = tmp_path / "page.html"
    east = np.linspace(-10.0, 10.0, 3)
    mesh = np.meshgrid(east, east, [0.0, 1.0], indexing="ij")
    grid = mrgp.points(np.column_stack([m.ravel() for m in mesh]), inputs=("lon", "lat", "time"))
    axes = fits.london.axes
    hours = fits.london.scaling.centre[2]
    support = mrgp.points(np.asarray(grid.x) + [0.0, 0.0, hours], inputs=grid.inputs)
    support = type(support)(**(vars(support) | {"axes": axes}))
    write_report(fits.london, path, data=fits.london_data, grid=support)
    text = path.read_text()
    assert re.search(r'>laqn</th><td>no2</td><td>points</td><td class="number">23</td>', text)
    assert re.search(r"<td>2022-02-19 00:00 to 2022-02-19 03:00</td>", text)
    assert HOSTILE not in text
    assert "sat &lt;script&gt;window.hit = 1&lt;/script&gt;" in text
    assert contents(path)["sources"][1]["name"] == HOSTILE
    assert contents(path)["grid"]["slider"]["label"] == "time (UTC)"


def test_a_fit_without_its_data_says_so_and_needs_a_grid(plotly, tmp_path):
    x = np.linspace(0.0, 6.0, 30)[:, None]
    seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="s")
    model = mrgp.MRGP(method="collapsed", inducing=8)
    quick = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)
    data = mrgp.Dataset([seen])
    fit = mrgp.fit(model, data, optimiser=quick)
    path = tmp_path / "page.html"
    with pytest.raises(ValueError, match="Give grid="):
        write_report(fit, path)
    write_report(fit, path, grid=mrgp.points(x))
    assert "There are no scores" in path.read_text()
    assert contents(path)["sources"] == []
    assert list(write_report(fit, path, data=data).checks) == ["in sample"]
    other = mrgp.Dataset([seen.replace(y=seen.y + 1)])
    with pytest.raises(ValueError, match="write_report goes on with the data of the fit"):
        write_report(fit, path, data=other)


@pytest.mark.usefixtures("as_users_see_it")
def test_mistakes_of_the_call_are_told(fits, plotly, tmp_path):
    path = tmp_path / "page.html"
    with pytest.raises(TypeError, match="takes a fit first"):
        write_report("fit", path)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no task is named 'o3'"):
        write_report(fits.curve, path, task="o3")
    scattered = mrgp.points([[0.0, 1.0], [1.0, 2.0]], inputs=("east", "north"))
    with pytest.raises(ValueError, match="no full grid"):
        write_report(fits.city, path, grid=scattered)
    with pytest.raises(ValueError, match="takes a full grid of points or cells over"):
        write_report(fits.city, path, grid=mrgp.points([[0.0]]))
    stranger = mrgp.Observations(mrgp.points([[1.0]], inputs="hour"), [1.0], name="other")
    with pytest.raises(ValueError, match="was not fitted"):
        write_report(fits.curve, path, held_out=mrgp.Dataset([stranger]))
    assert not path.exists()


@pytest.mark.parametrize(
    ("names", "across", "along"),
    [
        (("time", "lon", "lat"), (1, 2), 0),
        (("x", "y", "day"), (0, 1), 2),
        (("north", "east"), (1, 0), None),
        (("depth", "hour"), (1, 0), None),
        (("a", "b", "c"), (0, 1), 2),
        (("hour",), (0,), None),
    ],
)
def test_inputs_find_their_place_on_the_page(names, across, along):
    x = np.random.default_rng(0).uniform(size=(6, len(names)))
    seen = mrgp.Observations(mrgp.points(x, inputs=names), x[:, 0])
    quick = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
    layout = Layout.of(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=quick))
    assert (layout.across, layout.along) == (across, along)


def test_cells_of_a_grid_are_found_whatever_their_order(fits):
    mesh = np.meshgrid(np.arange(3.0), np.arange(2.0), indexing="ij")
    places = np.column_stack([m.ravel() for m in mesh])
    shuffled = np.random.default_rng(0).permutation(len(places))
    support = mrgp.points(places[shuffled], inputs=("east", "north"))
    grid = Grid.of(support, Layout.of(fits.city))
    there = np.asarray(support.x)[grid.index[0]]
    east, north = np.meshgrid(grid.middles(0), grid.middles(1))
    np.testing.assert_array_equal(there, np.stack([east, north], -1))


def test_polygons_have_their_outlines_and_every_task_its_field(plotly, tmp_path):
    shapely = pytest.importorskip("shapely")
    names, path = ("east", "north"), tmp_path / "page.html"
    x = np.random.default_rng(0).uniform(0, 4, (12, 2))
    quick = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
    seen = mrgp.Observations(mrgp.points(x, inputs=names), x[:, 0], name="s", task="no2")
    triangle = mrgp.polygons([shapely.Polygon([(0, 0), (2, 0), (1, 2)])], inputs=names)
    district = mrgp.Observations(triangle, [1.0], name="d", task="no2")
    data = mrgp.Dataset([seen, district])
    write_report(mrgp.fit(mrgp.MRGP(), data, optimiser=quick), path, data=data)
    drawn = contents(path)["sources"][1]["outlines"][0]
    assert set(zip(drawn["x"], drawn["y"], strict=True)) == {(0.0, 0.0), (2.0, 0.0), (1.0, 2.0)}
    assert "means over polygons" in path.read_text()
    other = mrgp.Observations(seen.support, 2 * x[:, 0], name="s", task="pm10")
    model = mrgp.MRGPRN(latents=1, kernel_w="constant")
    fit = mrgp.fit(model, mrgp.Dataset([seen, other]), optimiser=quick)
    write_report(fit, path)
    assert [field["task"] for field in contents(path)["spans"][0]["fields"]] == ["no2", "pm10"]
    assert write_report(fit, path, task="pm10").tasks == ("pm10",)


def test_lengthscales_have_the_units_of_the_inputs_that_their_kernel_sees(fits, plotly, tmp_path):
    path, quick = tmp_path / "page.html", mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
    data = fits.london_data.select(source="laqn")
    kernel = mrgp.RBF(dims=("time", "lon")) + mrgp.Periodic(24.0, dims="time")
    fit = mrgp.fit(mrgp.MRGP(kernel=kernel), data, optimiser=quick, throw=False)
    write_report(fit, path, grid=data.supports[0][:1])
    rows = re.findall(r'<th scope="row">(kernel[^<]*lengthscale)</th>(.*?)</tr>', path.read_text())
    units = {
        name.split("(")[0]: re.findall(r"<td[^>]*>([^<]*)</td>", cells)[1] for name, cells in rows
    }
    # That of a period is a share of it.
    assert units == {"kernel.RBF": "h, km", "kernel.Periodic": "–"}
