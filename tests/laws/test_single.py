"""Laws of conditioning that hold for any data; shapes are fixed so that they compile once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mrgp

KERNEL = mrgp.Matern52(lengthscale=mrgp.fixed(1.3), variance=mrgp.fixed(2.0))
MODEL = mrgp.MRGP(KERNEL, mean="zero", method="exact")
# Any values may stand far apart, or be as those of missing ones, which is said; laws hold still.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*over 1000 spreads from the others"),
    pytest.mark.filterwarnings("ignore:.*apart from all others"),
]
few = settings(max_examples=8, deadline=None)
places = arrays(np.float64, (6, 1), elements=st.floats(-5, 5, width=32))
values = arrays(np.float64, 6, elements=st.floats(-100, 100, width=32))
edges = st.lists(st.integers(-500, 500), min_size=3, max_size=3, unique=True).map(
    lambda e: [v / 100 for v in sorted(e)]
)


def conditioned(support, y, noise=0.1):
    return mrgp.fit(MODEL, mrgp.Dataset([mrgp.Observations(support, y, noise_variance=noise)]))


def mean_and_variance(fit, a, b, kind="mean"):
    p = mrgp.predict(fit, mrgp.intervals([a], [b], kind=kind))
    return p.mean[0], p.variance[0]


@few
@given(x=places, y=values, e=edges)
def test_a_box_is_the_weighted_mean_of_its_parts(x, y, e):
    fit = conditioned(mrgp.points(x), y)
    a, b, c = e
    whole, left, right = (mean_and_variance(fit, *pair)[0] for pair in ((a, c), (a, b), (b, c)))
    parts = ((b - a) * left + (c - b) * right) / (c - a)
    np.testing.assert_allclose(whole, parts, atol=1e-10 * (1 + np.abs(y).max()))


@few
@given(x=places, y=values, e=edges)
def test_a_total_is_the_measure_times_the_mean(x, y, e):
    fit = conditioned(mrgp.points(x), y)
    a, _, c = e
    (m, v), (total, spread) = (mean_and_variance(fit, a, c, kind) for kind in ("mean", "sum"))
    np.testing.assert_allclose(total, (c - a) * m, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(spread, (c - a) ** 2 * v, rtol=1e-7, atol=1e-12)


@few
@given(x=places, y=values)
def test_an_observation_never_adds_uncertainty(x, y):
    grid = mrgp.points(np.linspace(-6, 6, 9)[:, None])
    less = mrgp.predict(conditioned(mrgp.points(x[:5]), y[:5]), grid)
    more = mrgp.predict(conditioned(mrgp.points(x), y), grid)
    assert np.all(more.variance <= less.variance + 1e-9)
    assert np.all(less.variance <= 2.0 + 1e-9)


@few
@given(x=places, y=values, order=st.permutations(range(6)))
def test_the_order_of_observations_does_not_matter(x, y, order):
    grid = mrgp.points(np.linspace(-6, 6, 9)[:, None])
    a = mrgp.predict(conditioned(mrgp.points(x), y), grid)
    b = mrgp.predict(conditioned(mrgp.points(x[list(order)]), y[list(order)]), grid)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-8 * (1 + np.abs(y).max()))
    np.testing.assert_allclose(a.variance, b.variance, atol=1e-9)


@few
@given(x=places, y=values, z=values)
def test_the_mean_is_linear_in_the_values(x, y, z):
    grid = mrgp.points(np.linspace(-6, 6, 9)[:, None])
    first, second, both = (
        mrgp.predict(conditioned(mrgp.points(x), v), grid).mean for v in (y, z, y + z)
    )
    np.testing.assert_allclose(
        both, first + second, atol=1e-7 * (1 + np.abs(y).max() + np.abs(z).max())
    )


@few
@given(x=places, y=values, e=edges)
def test_joint_covariances_of_any_regions_are_positive_semidefinite(x, y, e):
    fit = conditioned(mrgp.points(x), y)
    a, b, c = e
    regions = mrgp.intervals([a, a, b, a, c], [c, b, c, a, c])
    joint = mrgp.predict(fit, regions, joint=True).covariance
    np.testing.assert_allclose(joint, joint.T, atol=1e-12)
    assert np.linalg.eigvalsh(joint).min() > -1e-9
