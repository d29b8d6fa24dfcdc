"""Supports one after another."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from mrgp.supports.covariates import same_fields
from mrgp.supports.polygons import Polygons, concat_polygons
from mrgp.supports.product import Products
from mrgp.supports.regions import join_nodes, require_supports
from mrgp.supports.support import Boxes, Nodes, Origin, Rectangular, Support, like


def concat(*supports: Support) -> Support:
    """Join supports of one kind and one set of inputs.

    Points become boxes of zero width beside boxes, and one-node regions beside nodes. Boxes and
    polygons mix neither with nodes nor with one another, and nodes that stand for regions do not
    mix with others. Products of the same groups of inputs are joined part by part.

    >>> from mrgp import intervals, points
    >>> concat(points([[1.0]]), intervals([0.0], [2.0]))
    Boxes(2 means: x1 0 to 2, widths 0 to 2)
    """
    if not supports:
        raise ValueError("concat needs at least one support.")
    require_supports(supports, "concat")
    for other in supports[1:]:
        _check_pair(supports[0], other)
    polygons = [s for s in supports if isinstance(s, Polygons)]
    if len(polygons) == len(supports):
        return concat_polygons(polygons)
    if any(isinstance(s, Products) for s in supports):
        return _concat_products(supports)
    if all(isinstance(s, Rectangular) for s in supports):
        return _concat_boxes(supports)
    if any(isinstance(s, Boxes | Polygons) or s.solid != supports[0].solid for s in supports):
        raise ValueError(
            "concat: boxes and polygons mix neither with nodes nor with one another. Keep them as"
            " sources of one Dataset, or turn regions into plain nodes first, for example"
            " made = boxes.quadrature(mrgp.GaussLegendre(5)) and then"
            " mrgp.nodes(made.x, made.weights, inputs=made.inputs, kind=made.kind)."
        )
    return dataclasses.replace(join_nodes(supports), origin=_joint_origin(supports))


def _check_pair(first: Support, other: Support) -> None:
    """Refuse supports whose values or inputs mean different things."""
    if other.kind != first.kind or other.input_names != first.input_names:
        raise ValueError(
            "concat: supports must agree in kind and inputs; got"
            f" {first.kind} of {first.input_names} and {other.kind} of {other.input_names}."
        )
    require_same_axes(first, other, "concat")
    if not same_fields(other.covariates, first.covariates):
        raise ValueError(
            "concat: supports must have their covariates from the same grids or functions. Join"
            " the supports first, and then call with_covariates."
        )


def require_same_axes(first: Support, other: Support, where: str) -> None:
    """Refuse supports whose numbers count from different origins or in different units."""
    if other.axes != first.axes:
        raise ValueError(
            f"{where}: supports must agree in what their numbers mean; got the axes"
            f" {first.axes} and {other.axes}. Read them as one frame or grid, or keep them as"
            " sources of one Dataset, which brings them to common axes."
        )


def _joint_origin(supports: Sequence[Support]) -> Origin | None:
    """Return the regions that all the nodes were laid out in, where these can be joined."""
    origins = [s.origin for s in supports if isinstance(s, Nodes) and s.origin is not None]
    if len(origins) < len(supports):
        return None
    try:
        return Origin(concat(*(origin.regions for origin in origins)))
    except ValueError:
        # Nodes of boxes and of polygons mix where boxes and polygons do not.
        return None


def _concat_boxes(supports: tuple[Support, ...]) -> Support:
    lower, upper = (np.concatenate([s.bounds[side] for s in supports]) for side in (0, 1))
    total = np.concatenate([s.total for s in supports])
    flat = tuple((lower == upper).all(0).tolist())
    return like(supports, (lower, upper), total, flat, **supports[0].labels)


def _concat_products(supports: tuple[Support, ...]) -> Support:
    groups = [tuple(columns for _, columns in support.members) for support in supports]
    if any(columns != groups[0] for columns in groups):
        raise ValueError(
            "concat: a product joins only products of the same groups of inputs; turn the supports"
            " into nodes first, for example support.quadrature(mrgp.GaussLegendre(5))."
        )
    members = zip(*(support.members for support in supports), strict=True)
    parts = tuple(concat(*(part for part, _ in same)) for same in members)
    return Products(parts, groups[0], **supports[0].labels)
