"""Clusters of overlapping supports, by comparing all pairs of regions.

A region is a list of pieces. A piece has sides, {column: (lower, upper)}, and perhaps a polygon
over two columns.
"""

import itertools

import shapely

from mrgp.supports import Polygons, Products

NEGLIGIBLE = 1e-6


def overlap_clusters(supports):
    """Return labels in order of first appearance, one list for each support."""
    regions = [region for support in supports for region in pieces(support)]
    labels = list(range(len(regions)))
    for i, j in itertools.combinations(range(len(regions)), 2):
        if labels[i] != labels[j] and overlap(regions[i], regions[j]):
            old, new = max(labels[i], labels[j]), min(labels[i], labels[j])
            labels = [new if label == old else label for label in labels]
    found = list(dict.fromkeys(labels))
    numbers = iter([found.index(label) for label in labels])
    return [[next(numbers) for _ in range(len(support))] for support in supports]


def pieces(support):
    """Write each region of a support as a list of pieces."""
    if isinstance(support, Products):
        parts = [pieces(part) for part in support.parts]
        regions = []
        for row in zip(*parts, strict=True):
            combined = []
            for combination in itertools.product(*row):
                sides, polygon = {}, None
                for (own, shape), columns in zip(combination, support.columns, strict=True):
                    sides |= {columns[d]: side for d, side in own.items()}
                    polygon = (tuple(columns[d] for d in shape[0]), shape[1]) if shape else polygon
                combined.append((sides, polygon))
            regions.append(combined)
        return regions
    if isinstance(support, Polygons):
        return [[({}, ((0, 1), shape))] for shape in support.outlines.shapes]
    lower, upper, weights, _ = support.atoms()
    return [
        [
            (dict(enumerate(zip(low, high, strict=True))), None)
            for low, high, weight in zip(lower[n], upper[n], weights[n], strict=True)
            if weight != 0
        ]
        for n in range(len(support))
    ]


def overlap(first, second):
    """Tell whether a piece of one region overlaps a piece of another."""
    return any(_pieces_overlap(a, b) for a, b in itertools.product(first, second))


def _pieces_overlap(a, b):
    (sides_a, polygon_a), (sides_b, polygon_b) = a, b
    if not all(_sides_overlap(sides_a[d], sides_b[d]) for d in sides_a.keys() & sides_b.keys()):
        return False
    if polygon_a is None and polygon_b is None:
        return True
    columns = (polygon_a or polygon_b)[0]
    shape_a = polygon_a[1] if polygon_a else _rectangle(*(sides_a[d] for d in columns))
    shape_b = polygon_b[1] if polygon_b else _rectangle(*(sides_b[d] for d in columns))
    if shape_a.area and shape_b.area:
        shared = shape_a.intersection(shape_b).area
        return shared > NEGLIGIBLE * min(shape_a.area, shape_b.area)
    return shape_a.relate(shape_b)[0] != "F"


def _sides_overlap(a, b):
    (low_a, high_a), (low_b, high_b) = _drawn_in(*a), _drawn_in(*b)
    if low_a == high_a and low_b == high_b:
        return low_a == low_b
    if low_a == high_a:
        return low_b <= low_a < high_b
    if low_b == high_b:
        return low_a <= low_b < high_a
    return max(low_a, low_b) < min(high_a, high_b)


def _drawn_in(lower, upper):
    return lower, upper - NEGLIGIBLE * (upper - lower)


def _rectangle(x, y):
    corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])]
    if x[0] < x[1] and y[0] < y[1]:
        return shapely.Polygon(corners)
    if x[0] == x[1] and y[0] == y[1]:
        return shapely.Point(corners[0])
    return shapely.LineString([corners[0], corners[2]])
