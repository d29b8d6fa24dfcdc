"""Parts of products of supports, and their rows as tensor nodes by plain loops."""

import itertools

import numpy as np
import shapely

import mrgp
from reference import gaussian

RNG = np.random.default_rng(3)
PLACES = mrgp.points(RNG.uniform(0, 2, (3, 2)))
CELLS = mrgp.boxes([[0.0, 0.0], [1.0, 0.5], [0.2, 0.1]], [[1.0, 0.5], [1.6, 0.5], [0.2, 0.1]])
HOURS = mrgp.intervals([0.0, 1.0, 2.5], [1.0, 2.5, 2.75])
INSTANTS = mrgp.points([[0.5], [1.0], [1.0]])
LUMPS = mrgp.nodes(
    [[[0.1, 0.3], [0.9, 1.4], [1.7, 0.2]], [[1.0, 1.0], [0.5, 0.2], [9.0, 9.0]], [[0.0, 0.0]] * 3],
    [[1.0, 2.0, 1.0], [3.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
)
COUNTS = mrgp.nodes(LUMPS.x, RNG.normal(size=(3, 3)), kind="sum")
TRIANGLES = mrgp.polygons(
    [shapely.Polygon([(a, 0), (a + 1, 0.2), (a + 0.3, 1.1)]) for a in (0.0, 0.4, 1.0)], spacing=0.5
)
DEPTHS = mrgp.nodes([[[0.0], [0.4]], [[0.2], [1.1]], [[0.3], [0.6]]], [[1.0, 3.0]] * 3)
PRODUCTS = {
    "nodes, hours": (LUMPS, HOURS),
    "hours, nodes": (HOURS, LUMPS),
    "counts, hours": (COUNTS, mrgp.intervals([0.0, 1.0, 2.0], [1.0, 3.0, 2.0], kind="sum")),
    "nodes, instants": (LUMPS, INSTANTS),
    "polygons, hours": (TRIANGLES, HOURS),
    "nodes, depths": (LUMPS, DEPTHS),
    "hours, depths, instants": (HOURS, DEPTHS, INSTANTS),
}


def tensor(*parts):
    """Write rows of a product as (nodes, weights), by loops over the nodes of the parts."""
    rows = []
    for row in zip(*(gaussian.functionals(part) for part in parts), strict=True):
        x, weights = [], []
        for nodes in itertools.product(*(zip(*pair, strict=True) for pair in row)):
            x.append(np.concatenate([place for place, _ in nodes]))
            weights.append(np.prod([weight for _, weight in nodes]))
        rows.append((np.array(x), np.array(weights)))
    return rows
