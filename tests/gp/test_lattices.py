"""Boxes whose sides repeat: the same covariances from pairs of intervals as from pairs of boxes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mrgp
from mrgp.data import Scaling
from mrgp.gp import cross_covariance
from mrgp.gp.readings import prior_covariance
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import DEFAULT_RULE, Geometry, lattice_of

CORNERS = np.array([[i, 0.5 * j, 0.0] for i in range(6) for j in range(5)], float)
GRID = mrgp.boxes(CORNERS, CORNERS + [1.0, 0.5, 0.0], kind="sum")
PLACES = mrgp.points(np.random.default_rng(0).uniform(0, 6, (9, 3)))
KERNELS = {
    "product": mrgp.Matern32([1.0, 2.0, 1.5], product=True, variance=2.0),
    "RBF": mrgp.RBF(1.3, variance=0.7),
    "sum": mrgp.RBF(1.0, dims=(0, 1)) + mrgp.Matern12(2.0, product=True),
    "different": mrgp.RBF(1.0, dims=0) * mrgp.Periodic(2.0, 1.0, dims=1),
    "one input": mrgp.Matern52(1.0, dims=1),
    "polynomial": mrgp.Linear(1.0, 0.3),
}


def bound(kernel, *supports):
    return unwrap(kernel.bind(Binding(Geometry.of(supports))))


@pytest.mark.parametrize("name", KERNELS)
def test_covariances_by_intervals_are_those_by_boxes(name):
    with jax.enable_x64(True):
        kernel = bound(KERNELS[name], GRID, PLACES)
        lattice = lattice_of(GRID)
        assert lattice.lower.shape == (3, 6)
        for known in (lattice, lattice.filled()):
            for pair, lattices in (
                ((GRID, GRID), (known, known)),
                ((GRID, PLACES), (known, None)),
                ((PLACES, GRID), (None, known)),
            ):
                found = cross_covariance(kernel, *pair, lattices=lattices)
                expected = cross_covariance(kernel, *pair)
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", [mrgp.Matern32(1.0), mrgp.White(1.0) + mrgp.RBF(1.0)])
def test_kernels_that_join_inputs_or_know_no_averages_go_the_usual_way(kernel):
    with jax.enable_x64(True):
        made = bound(kernel, GRID)
        lattice = lattice_of(GRID)
        found = cross_covariance(made, GRID, GRID, lattices=(lattice, lattice))
        np.testing.assert_array_equal(found, cross_covariance(made, GRID, GRID))


def test_slopes_are_the_same():
    def total(scale, lattices):
        kernel = mrgp.Matern32(scale, variance=1.0, dims=(0, 1, 2), product=True)
        return jnp.sum(jnp.sin(cross_covariance(kernel, GRID, PLACES, lattices=lattices)))

    with jax.enable_x64(True):
        scale = jnp.array([1.0, 2.0, 0.5])
        found = jax.grad(total)(scale, (lattice_of(GRID), None))
        np.testing.assert_allclose(found, jax.grad(total)(scale, (None, None)), rtol=1e-10)


def test_records_of_grids_have_a_lattice_and_keep_it_when_taken():
    seen = mrgp.Observations(GRID, np.arange(30.0), name="cells")
    data = mrgp.Dataset([seen])
    (record,) = Scaling.of(data).records(data)
    some = record.take(np.array([3, 7, 29]))
    assert some.lattice.index.shape == (3, 3)
    model = mrgp.MRGP(mrgp.RBF()).build(data)
    with jax.enable_x64(True):
        plain = unwrap(model)
        found = prior_covariance(plain.solver.kernels, plain.readings((some,)), DEFAULT_RULE)
        kernel = plain.solver.kernels[0]
        expected = cross_covariance(kernel, some.support, some.support)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "support",
    [
        PLACES,
        mrgp.boxes(CORNERS[:5], CORNERS[:5] + 1.0),
        mrgp.intervals(np.arange(20.0), np.arange(20.0) + 1.0),
    ],
)
def test_where_little_repeats_there_is_none(support):
    assert lattice_of(support) is None
