"""Laws of how experts share a prediction, whatever they say; shapes compile once."""

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mrgp.models.mixing import by_precision, in_order, reliability, slices
from reference import deep as slow

EXPERTS, REGIONS, NODES = 3, 2, 4
few = settings(max_examples=50, deadline=None)


def numbers(low, high, *shape):
    return arrays(np.float64, shape, elements=st.floats(low, high))


known = numbers(0, 1, EXPERTS, REGIONS, NODES)
spread = numbers(0, 1e6, EXPERTS, REGIONS, NODES)
weights = numbers(-5, 5, REGIONS, NODES).filter(lambda w: np.all(np.abs(w).sum(1) > 1e-3))


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    with jax.enable_x64(True):
        yield


def ordered(r):
    return np.asarray(in_order(list(map(jax.numpy.asarray, r))))


def mixed(r, w):
    return (np.asarray(v) for v in slices(in_order(list(map(jax.numpy.asarray, r))), w))


@few
@given(known)
def test_shares_by_trust_sum_to_one_and_are_those_of_the_formula(r):
    shares = ordered(r)
    assert np.all(shares >= 0)
    np.testing.assert_allclose(shares.sum(0), 1.0, rtol=1e-12)
    for b in range(REGIONS):
        for s in range(NODES):
            np.testing.assert_allclose(shares[:, b, s], slow.in_order(r[:, b, s]), atol=1e-14)


@few
@given(spread, numbers(1e-6, 1e6, REGIONS, NODES))
def test_shares_by_precision_sum_to_one_and_fall_with_the_variance(v, prior):
    shares = np.asarray(by_precision(list(map(jax.numpy.asarray, v)), prior))
    assert np.all(shares >= 0)
    np.testing.assert_allclose(shares.sum(0), 1.0, rtol=1e-12)
    assert np.all((shares[0] >= shares[1]) | (v[0] > v[1]))
    informed = np.any(v < 0.999 * prior, 0)
    assert np.all(shares[:, informed][(v > prior)[:, informed]] == 0)
    np.testing.assert_array_equal(shares[:, np.all(v > prior, 0)], 1 / EXPERTS)


@few
@given(spread, numbers(1e-6, 1e6, REGIONS, NODES), st.floats(1e-3, 1e3))
def test_shares_by_precision_do_not_depend_on_units(v, prior, scale):
    one, other = (
        np.asarray(by_precision(list(map(jax.numpy.asarray, v * s)), prior * s))
        for s in (1.0, scale)
    )
    np.testing.assert_allclose(one, other, atol=1e-6)


@few
@given(known, weights)
def test_slices_are_another_way_to_write_the_mixture(r, w):
    widths, parts = mixed(r, w)
    shares = ordered(r)
    assert np.all(widths >= 0)
    assert np.all(parts >= 0)
    np.testing.assert_allclose(widths.sum(0), 1.0, atol=1e-10)
    np.testing.assert_allclose(np.einsum("kb,kabs->abs", widths, parts), shares, atol=1e-10)
    wide = widths > 1e-6
    total = np.where(wide[:, :, None], parts.sum(1), 1.0)
    np.testing.assert_allclose(total, 1.0, atol=1e-8)


@few
@given(known, weights)
def test_slices_are_those_of_intervals_laid_end_to_end(r, w):
    widths, parts = mixed(r, w)
    shares = ordered(r)
    for b in range(REGIONS):
        by_hand = slow.slices(shares[:, b], w[b])
        np.testing.assert_allclose(widths[:, b], by_hand[0], atol=1e-11)
        wide = by_hand[0] > 1e-6
        np.testing.assert_allclose(parts[wide, :, b], by_hand[1][wide], atol=1e-8)


@few
@given(numbers(0, 1, EXPERTS, REGIONS, 1))
def test_at_a_single_node_slices_are_the_experts(r):
    widths, parts = mixed(r, np.ones((REGIONS, 1)))
    np.testing.assert_allclose(widths, ordered(r)[..., 0], atol=1e-11)
    for k in range(EXPERTS):
        wide = widths[k] > 1e-6
        alone = (np.arange(EXPERTS) == k)[:, None] * np.ones(wide.sum())
        np.testing.assert_allclose(parts[k, :, wide, 0].T, alone, atol=1e-8)


@few
@given(
    numbers(0, 100, REGIONS, NODES),
    numbers(1e-3, 100, REGIONS, NODES),
    st.floats(1e-3, 100).map(np.asarray),
)
def test_reliability_is_a_share_that_falls_with_the_variance_row_by_row(variance, prior, floor):
    # A prior a hair above the floor tells nothing either: a line of its own, below.
    assume(np.all((prior <= floor) | (prior > 1.000001 * floor)))
    found = np.asarray(reliability(variance, prior, floor))
    assert np.all((found >= 0) & (found <= 1))
    more = np.asarray(reliability(1.3 * variance + 1e-3, prior, floor))
    assert np.all(more <= (1 + 1e-9) * found)
    alone = np.asarray(reliability(variance[:1], prior[:1], floor))
    np.testing.assert_allclose(found[:1], alone, rtol=1e-12)
    for place in np.ndindex(found.shape):
        small = max(variance[place], 1e-12 * prior[place])
        by_hand = slow.reliability(small, prior[place], float(floor))
        assert found[place] == pytest.approx(by_hand, rel=1e-9)


def test_reliability_is_whole_where_there_are_data_and_nothing_without():
    found = reliability(np.array([[0.1, 1.0, 0.3]]), np.ones((1, 3)), np.asarray(0.1))
    np.testing.assert_allclose(np.asarray(found)[0, :2], [1.0, 0.0], atol=1e-4)
    assert 0.01 < found[0, 2] < 0.99
    for prior in (np.ones((1, 3)), np.full((1, 3), np.nextafter(1.0, 2.0))):
        nothing_learned = reliability(np.ones((1, 3)), prior, np.ones(()))
        np.testing.assert_allclose(nothing_learned, 0.0, atol=1e-4)
