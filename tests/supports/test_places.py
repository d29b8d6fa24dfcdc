"""Nodes that coincide are one place, whichever support they come from."""

import numpy as np

import mrgp
from mrgp.supports import shared_places


def test_supports_become_matrices_over_distinct_places():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 4, (5, 2))
    cloud = np.stack([x[[0, 2, 4]], x[[2, 1, 0]] + 1e-12, rng.uniform(0, 4, (3, 2))])
    weights = np.array([[0.5, 0.5, 0.0], [1.0, 2.0, 3.0], [0.2, 0.3, 0.5]])
    supports = [mrgp.points(x[:3]), mrgp.nodes(cloud, weights), mrgp.boxes(x[:2], x[:2] + 1)]
    places = shared_places(supports)

    def f(z):
        return np.sin(z[..., 0]) + z[..., 1] ** 2

    assert np.allclose(places.x[:3], x[:3])
    # Three points, three new nodes of the cloud (one has no weight), 25 nodes in each of two boxes.
    assert len(places.x) == 3 + 3 + 50
    for support, rows in zip(supports, places.rows, strict=True):
        atoms = support.quadrature().atoms()
        want = (np.asarray(atoms.weights) * f(np.asarray(atoms.lower))).sum(1)
        assert np.allclose(rows @ f(places.x), want)


def test_a_node_that_enters_a_region_twice_counts_twice():
    cloud = np.array([[[1.0], [1.0], [2.0]]])
    assert np.allclose(shared_places([mrgp.nodes(cloud)]).rows[0], [[2 / 3, 1 / 3]])
