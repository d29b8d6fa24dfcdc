"""Sources with dates and degrees are brought to one set of axes."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

import mrgp
from mrgp.data import common_axes, harmonise
from mrgp.data.harmony import describe
from mrgp.supports import Axis

HOURS = Axis("time", 0.0, 3600.0, "h", "UTC")
DAYS = Axis("time", 86400.0, 86400.0, "D")
LON = Axis("longitude", -0.1, 1 / 69.4, "km")
LAT = Axis("latitude", 51.5, 1 / 111.3, "km")


def on(support, *axes):
    return dataclasses.replace(support, axes=axes)


def test_days_are_written_as_hours():
    days = on(mrgp.intervals([0.0, 1.5], [1.0, 2.0], inputs="time"), DAYS)
    hours = harmonise(days, (HOURS,))
    np.testing.assert_array_equal(hours.lower, [[24.0], [60.0]])
    np.testing.assert_array_equal(hours.upper, [[48.0], [72.0]])
    assert hours.axes == (HOURS,)
    back = harmonise(hours, (DAYS,))
    np.testing.assert_allclose(back.lower, days.lower)


def test_the_same_axes_and_unknown_ones_leave_the_numbers_alone():
    plain = mrgp.points([[0.1], [0.2]])
    assert harmonise(plain, None) is plain
    known = harmonise(plain, (HOURS,))
    assert known.axes == (HOURS,)
    np.testing.assert_array_equal(known.x, plain.x)
    assert harmonise(known, (HOURS,)) is known
    moved = harmonise(known, (dataclasses.replace(HOURS, zone="Europe/London"),))
    np.testing.assert_array_equal(moved.x, plain.x)


def test_every_support_is_moved():
    x = np.array([[0.0, 1.0], [2.0, 5.0]])
    boxes = mrgp.boxes(x, x + 1)
    for support in (mrgp.points(x), boxes, boxes.quadrature()):
        moved = harmonise(on(support, DAYS, LAT), (HOURS, LAT))
        lower, upper = support.bounds
        np.testing.assert_allclose(moved.bounds[0], lower * [24, 1] + [24, 0])
        np.testing.assert_allclose(moved.bounds[1], upper * [24, 1] + [24, 0])
        np.testing.assert_allclose(moved.total, support.total)


def test_totals_are_integrals_in_the_new_units():
    start = np.array([[0.0, 0.0], [1.0, 3.0]])
    boxes = mrgp.boxes(start, start + [1.0, 2.0], kind="sum", weights=[1.0, 3.0])
    np.testing.assert_allclose(harmonise(on(boxes, DAYS, None), (HOURS, None)).total, [48, 144])
    flat = mrgp.boxes(start, start + [0.0, 2.0], kind="sum")
    np.testing.assert_allclose(harmonise(on(flat, DAYS, None), (HOURS, None)).total, flat.total)
    counts = mrgp.points(start, kind="sum", weights=[2.0, 3.0])
    np.testing.assert_allclose(harmonise(on(counts, DAYS, None), (HOURS, None)).total, [2, 3])


def test_totals_over_nodes_are_integrals_row_by_row():
    mixed = on(mrgp.intervals([0.0, 1.0], [1.0, 1.0], inputs="t", kind="sum"), DAYS)
    expected = harmonise(mixed, (HOURS,)).total
    np.testing.assert_allclose(expected, [24.0, 1.0])
    np.testing.assert_allclose(harmonise(mixed[:1].quadrature(), (HOURS,)).total, expected[:1])
    with pytest.raises(
        ValueError,
        match="here: totals change with the units of 't', but the nodes of 1 of 2 regions coincide"
        r" along it, first of region 1, .*time_unit=",
    ):
        harmonise(mixed.quadrature(), (HOURS,), "here")
    # Another origin changes no measure.
    later = dataclasses.replace(DAYS, origin=0.0)
    np.testing.assert_allclose(harmonise(mixed.quadrature(), (later,)).total, [1.0, 1.0])


def test_totals_over_nodes_of_a_product_are_named_by_its_inputs():
    mixed = mrgp.intervals([0.0, 1.0], [1.0, 1.0], kind="sum").quadrature()
    joined = mrgp.product(mrgp.points([[0.0]], inputs="depth"), mixed, inputs=("depth", "t"))
    with pytest.raises(ValueError, match="totals change with the units of 't'"):
        harmonise(on(joined, None, DAYS), (None, HOURS))


def test_covariates_know_which_regions_have_an_extent():
    mixed = on(mrgp.intervals([0.0, 1.0], [1.0, 1.0], inputs="t", kind="sum"), DAYS)
    dates = np.datetime64("1970-01-01", "ns") + np.arange(4) * np.timedelta64(1, "D")
    added = mixed.with_covariates(xr.DataArray(np.arange(4.0), {"t": dates}, ["t"], "c"))
    np.testing.assert_allclose(harmonise(added, (HOURS, None)).total, [24.0, 1.0])


def test_weighted_polygons_keep_their_outlines_and_refuse_to_be_refined():
    shapely = pytest.importorskip("shapely")
    squares = mrgp.polygons(
        [shapely.box(0, 0, 10, 10), shapely.box(10, 0, 20, 10)],
        spacing=2.0,
        inputs=("lon", "lat"),
        weights=lambda x: 1.0 + x[:, 0],
    )
    squares = on(squares, LON, LAT)
    moved = harmonise(squares, (dataclasses.replace(LON, origin=LON.origin - 5 * LON.step), LAT))
    np.testing.assert_allclose(
        shapely.bounds(moved.outlines.shapes), [[5, 0, 15, 10], [15, 0, 25, 10]], atol=1e-9
    )
    place = mrgp.points([[7.0, 5.0]], inputs=("lon", "lat"))
    place = dataclasses.replace(place, axes=moved.axes)
    labels = mrgp.overlap_clusters([moved, place]).labels
    assert [found.tolist() for found in labels] == [[0, 1], [0]]
    frame = mrgp.Observations(moved, [1.0, 2.0]).to_frame()
    original = mrgp.Observations(squares, [1.0, 2.0]).to_frame()
    assert frame.geometry.geom_equals_exact(original.geometry, 1e-9).all()
    for support in (moved, moved[1:], mrgp.concat(moved, moved)):
        with pytest.raises(
            ValueError, match="refine: these polygons are weighted by a function of other numbers"
        ):
            support.refine()
    # A product whose polygons stay where they are leaves their densities alone.
    days = mrgp.product(squares, on(mrgp.intervals([0.0], [1.0], inputs="t"), DAYS))
    part = harmonise(days, (LON, LAT, HOURS)).parts[0]
    assert not part.outlines.stale


def test_a_moved_copy_has_no_axes():
    shapely = pytest.importorskip("shapely")
    squares = mrgp.polygons([shapely.box(0, 0, 1, 1)])
    joined = mrgp.product(squares, mrgp.intervals([0.0], [1.0]))
    plain = (mrgp.points([[0.0]]), mrgp.intervals([0.0], [1.0]), mrgp.nodes([[[0.0], [1.0]]]))
    cases = [(squares, (LON, LAT)), (joined, (LON, LAT, HOURS)), *((s, (HOURS,)) for s in plain)]
    for support, axes in cases:
        d = support.dimension
        assert on(support, *axes).affine(np.full(d, 2.0), np.zeros(d)).axes is None


def test_polygons_keep_their_outlines_and_measure():
    shapely = pytest.importorskip("shapely")
    squares = mrgp.supports.polygons([shapely.box(0, 0, 10, 10)], kind="sum", spacing=2.0)
    other = dataclasses.replace(LON, step=2 * LON.step), LAT
    months = mrgp.product(squares, mrgp.intervals([0.0], [30.0], kind="sum"))
    for support, axes, expected, total in (
        (on(squares, LON, LAT), other, [0, 0, 5, 10], 50),
        (on(months, LON, LAT, DAYS), (*other, HOURS), [0, 0, 5, 10], 50 * 720),
    ):
        moved = harmonise(support, axes)
        np.testing.assert_allclose(moved.total, [total])
        polygons = moved.parts[0] if isinstance(moved, mrgp.supports.Products) else moved
        np.testing.assert_allclose(shapely.bounds(polygons.outlines.shapes), [expected])
        np.testing.assert_allclose(polygons.bounds, [[expected[:2]], [expected[2:]]])


def test_a_mean_over_polygons_stays_a_mean():
    shapely = pytest.importorskip("shapely")
    squares = mrgp.supports.polygons([shapely.box(0, 0, 10, 10)], spacing=2.0)
    moved = harmonise(on(squares, LON, LAT), (dataclasses.replace(LON, origin=1.0), LAT))
    np.testing.assert_allclose(moved.total, [1.0])


def test_longitudes_are_counted_from_one_side_of_the_date_line():
    east, west = (Axis("longitude", origin, 0.01, "km") for origin in (179.9, -179.9))
    moved = harmonise(on(mrgp.points([[0.0]]), west), (east,))
    np.testing.assert_allclose(moved.x, [[20.0]])


def test_a_dataset_has_the_axes_of_the_first_source_that_knows():
    def source(name, support):
        return mrgp.Observations(support, np.ones(len(support)), name=name)

    days = source("days", on(mrgp.points([[1.0]], inputs="time"), DAYS))
    hours = source("hours", on(mrgp.points([[1.0]], inputs="time"), HOURS))
    data = mrgp.Dataset([days, hours])
    assert data.axes == (DAYS,)
    np.testing.assert_allclose(data["hours"].support.x, [[1 / 24 - 1]])
    plain = source("plain", mrgp.points([[7.0]]))
    with pytest.warns(
        UserWarning,
        match=r"source 'plain', task 'value': the input 'time' is in plain numbers, which are taken"
        " as h since 1970-01-01 UTC",
    ):
        mixed = mrgp.Dataset([plain, hours])
    assert {s.axes for s in mixed.supports} == {(HOURS,)}
    np.testing.assert_array_equal(mixed["plain"].support.x, [[7.0]])
    # What is drawn from a dataset has axes already, and is quiet.
    assert mixed.select(source="plain").axes == (HOURS,)


def test_quantities_do_not_mix():
    time = mrgp.Observations(on(mrgp.points([[1.0]], inputs="t"), HOURS), [1.0], name="a")
    place = mrgp.Observations(on(mrgp.points([[1.0]], inputs="t"), LON), [1.0], name="b")
    with pytest.raises(
        ValueError,
        match="source 'b', task 'value': the input 't' is longitude, but time in the data before",
    ):
        mrgp.Dataset([time, place])


def test_common_axes_take_the_first_known_of_each_input():
    x = mrgp.points([[0.0, 0.0]])
    assert common_axes([x]) is None
    assert common_axes([x, on(x, None, LAT), on(x, HOURS, None)]) == (HOURS, LAT)


def test_axes_are_described():
    assert describe(DAYS) == "D since 1970-01-02 UTC"
    assert describe(dataclasses.replace(DAYS, origin=90.0)) == "D since 1970-01-01T00:01:30 UTC"
    assert describe(LON) == "km from longitude -0.1"
