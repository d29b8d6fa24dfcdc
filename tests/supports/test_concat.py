"""Supports one after another: what may be joined, and what it becomes."""

import dataclasses

import numpy as np
import pytest
import shapely

import mrgp
from mrgp.supports import Axis, Nodes, Polygons, Products
from reference.products import HOURS, INSTANTS, LUMPS, PLACES, TRIANGLES

HOURLY = Axis("time", 0.0, 3600.0, "h")


def on(support, *axes):
    return dataclasses.replace(support, axes=axes)


def assert_joined(joined, *parts):
    """Check that the regions are those of the parts, in order."""
    np.testing.assert_allclose(joined.total, np.concatenate([p.total for p in parts]))
    np.testing.assert_allclose(joined.moment, np.concatenate([p.moment for p in parts]))


def test_polygons_joined_are_polygons():
    squares = mrgp.polygons([shapely.box(0, 0, 2, 2)], spacing=0.25)
    joined = mrgp.concat(TRIANGLES, squares)
    assert isinstance(joined, Polygons)
    assert_joined(joined, TRIANGLES, squares)
    assert len(joined.outlines.shapes) == 4
    assert_joined(joined.refine(), TRIANGLES.refine(), squares.refine())


def test_points_beside_nodes_are_nodes():
    joined = mrgp.concat(LUMPS, PLACES)
    assert type(joined) is Nodes
    assert joined.solid == ()
    assert_joined(joined, LUMPS, PLACES)


SQUARES = mrgp.boxes([[0.0, 0.0]], [[1.0, 1.0]])


@pytest.mark.parametrize("other", [PLACES, LUMPS, SQUARES, SQUARES.quadrature()])
def test_polygons_keep_to_themselves(other):
    text = "boxes and polygons mix neither with nodes nor with one another. Keep them as sources"
    for supports in ((TRIANGLES, other), (other, TRIANGLES)):
        with pytest.raises(ValueError, match=text):
            mrgp.concat(*supports)
    hours = (mrgp.product(TRIANGLES, HOURS), mrgp.product(LUMPS, INSTANTS))
    with pytest.raises(ValueError, match=text):
        mrgp.concat(*hours)


def test_regions_as_plain_nodes_mix_with_nodes():
    made = SQUARES.quadrature(mrgp.GaussLegendre(5))
    with pytest.raises(ValueError, match="boxes and polygons mix neither"):
        mrgp.concat(made, PLACES)
    plain = mrgp.nodes(made.x, made.weights, inputs=made.inputs, kind=made.kind)
    assert_joined(mrgp.concat(plain, PLACES), SQUARES, PLACES)


def test_products_join_part_by_part():
    first, second = mrgp.product(LUMPS, HOURS), mrgp.product(PLACES, HOURS).quadrature()
    lumps = mrgp.product(LUMPS, INSTANTS)
    joined = mrgp.concat(first, lumps)
    assert isinstance(joined, Products)
    assert joined.pointlike == (True, True, False)
    assert_joined(joined, first, lumps)
    nodes = mrgp.concat(first.quadrature(), second)
    assert_joined(nodes, first.quadrature(), second)
    months = mrgp.product(TRIANGLES, HOURS)
    twice = mrgp.concat(months, months[:1])
    assert isinstance(twice.parts[0], Polygons)
    assert_joined(twice, months, months[:1])


def test_axes_and_names_are_kept():
    hours = on(HOURS, HOURLY)
    joined = mrgp.concat(hours, on(INSTANTS, HOURLY))
    assert joined.axes == (HOURLY,)
    assert joined.flat == (False,)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("supports", "error", "text"),
    [
        ((HOURS, [1.0]), TypeError, r"concat takes supports, as concat\(a, b\); got list"),
        (
            (on(HOURS, HOURLY), on(HOURS, dataclasses.replace(HOURLY, step=60.0))),
            ValueError,
            "concat: supports must agree in what their numbers mean; got the axes .*step=3600.0.*"
            " and .*step=60.0.* keep them as sources of one Dataset",
        ),
        ((on(HOURS, HOURLY), HOURS), ValueError, "agree in what their numbers mean; got .* and No"),
        (
            (PLACES, PLACES.with_covariates(lambda x: x[:, 0], "h")),
            ValueError,
            "concat: supports must agree in kind and inputs",
        ),
        (
            tuple(PLACES.with_covariates(lambda x, a=a: a * x[:, 0], "h") for a in (1.0, 2.0)),
            ValueError,
            "have their covariates from the same grids or functions. Join the supports first",
        ),
        (
            (mrgp.product(LUMPS, HOURS), mrgp.product(HOURS, LUMPS)),
            ValueError,
            "a product joins only products of the same groups of inputs; turn the supports into",
        ),
        (
            (mrgp.product(LUMPS, HOURS), mrgp.product(PLACES, HOURS)),
            ValueError,
            "a product joins only products of the same groups of inputs",
        ),
    ],
)
def test_what_does_not_fit_is_said(supports, error, text):
    with pytest.raises(error, match=text):
        mrgp.concat(*supports)
