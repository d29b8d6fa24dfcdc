"""Models that must agree: one support written two ways, one fit in two units, and so on."""

import numpy as np
import pytest

import mrgp
from groups import rest_thorough

FIXED = mrgp.RBF(lengthscale=mrgp.fixed(0.8), variance=mrgp.fixed(2.0))
GRID = mrgp.points(np.linspace(-0.5, 5.5, 11)[:, None])


def observations(seed=0, n=14, **arguments):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 5, (n, 1))
    return x, np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(n)


def untrained(sources, **arguments):
    """Fit with every number fixed, so that only conditioning is compared."""
    model = mrgp.MRGP(FIXED, mean="zero", method=arguments.pop("method", "exact"))
    fit = mrgp.fit(model, mrgp.Dataset(sources), **arguments)
    assert fit.status.message == "nothing to train"
    return fit


def assert_same(a, b, tolerance=1e-9):
    p, q = mrgp.predict(a, GRID), mrgp.predict(b, GRID)
    np.testing.assert_allclose(p.mean, q.mean, atol=tolerance)
    np.testing.assert_allclose(p.variance, q.variance, atol=tolerance)


def known(support, y, name="a", noise=0.01):
    return mrgp.Observations(support, y, name=name, noise_variance=noise)


def test_points_zero_width_boxes_and_single_nodes_are_one():
    x, y = observations()
    fits = [
        untrained([known(s, y)])
        for s in (mrgp.points(x), mrgp.boxes(x, x), mrgp.nodes(x[:, None, :]))
    ]
    assert_same(fits[0], fits[1])
    assert_same(fits[0], fits[2])


def test_masked_rows_equal_deleted_rows():
    x, y = observations()
    gaps = y.copy()
    gaps[[1, 7]] = np.nan
    keep = ~np.isnan(gaps)
    a = untrained([known(mrgp.points(x), gaps)])
    b = untrained([known(mrgp.points(x[keep]), y[keep])])
    assert_same(a, b, 1e-12)
    assert a.counts[("a", "value")] == (12, 2)
    assert "2 missing left out" in a.summary()


def test_a_predicted_box_is_the_weighted_mean_of_its_parts():
    x, y = observations()
    fit = untrained([known(mrgp.points(x), y)])

    def mean(a, b, kind="mean"):
        return mrgp.predict(fit, mrgp.intervals([a], [b], kind=kind)).mean[0]

    assert mean(1.0, 4.0) == pytest.approx(
        (mean(1.0, 1.7) * 0.7 + mean(1.7, 4.0) * 2.3) / 3, abs=1e-10
    )
    assert mean(1.0, 4.0, "sum") == pytest.approx(3 * mean(1.0, 4.0), abs=1e-10)


def test_a_composite_weight_is_a_larger_noise_to_the_posterior():
    x, y = observations()
    a = untrained([known(mrgp.points(x), y)], weights={"a": 0.25})
    b = untrained([known(mrgp.points(x), y, noise=0.04)])
    assert_same(a, b)
    assert "composite weight 0.25" in a.summary()


@pytest.mark.parametrize("method", rest_thorough(["exact", "collapsed"], "exact"))
def test_two_copies_at_half_weight_are_one_copy(method):
    x, y = observations()
    one = untrained([known(mrgp.points(x), y)], method=method)
    sources = [known(mrgp.points(x), y, "a"), known(mrgp.points(x), y, "b")]
    two = untrained(sources, weights={"a": 0.5, ("b", "value"): 0.5}, method=method)
    assert_same(one, two, 1e-6)


def test_vbagg_is_mrgp_and_center_point_is_mrgp_on_centres():
    x, y = observations()
    lower = np.arange(0.0, 5.0)[:, None]
    cells = mrgp.Observations(mrgp.boxes(lower, lower + 1), np.sin(2 * lower[:, 0]), name="cells")
    data = mrgp.Dataset([known(mrgp.points(x), y), cells])
    quick = mrgp.LBFGS(max_steps=5, starts=1, candidates=0)
    a, b = (mrgp.fit(m, data, optimiser=quick) for m in (mrgp.MRGP(FIXED), mrgp.VBAgg(FIXED)))
    assert_same(a, b, 1e-12)
    c = mrgp.fit(mrgp.CenterPoint(mrgp.MRGP(FIXED)), data, optimiser=quick)
    centres = mrgp.Observations(mrgp.points(lower + 0.5), np.sin(2 * lower[:, 0]), name="cells")
    d = mrgp.fit(
        mrgp.MRGP(FIXED), mrgp.Dataset([known(mrgp.points(x), y), centres]), optimiser=quick
    )
    assert_same(c, d, 1e-12)
    wide = mrgp.intervals([0.0, 2.0], [5.0, 3.0])
    region, centre = mrgp.predict(c, wide), mrgp.predict(d, mrgp.points([[2.5], [2.5]]))
    np.testing.assert_allclose(region.mean, centre.mean, rtol=1e-12)
    np.testing.assert_allclose(region.variance, centre.variance, rtol=1e-12)
    with pytest.raises(ValueError, match="VBAgg has all weights one by definition"):
        mrgp.fit(mrgp.VBAgg(), data, weights={"a": 0.5})


@pytest.fixture(scope="module")
def in_first_units():
    x, y = observations(3, 24)
    return x, y, mrgp.fit(mrgp.MRGP(), mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)]))


@pytest.mark.parametrize(
    ("stretch", "move", "scale", "offset"),
    [(1e-3, 0.0, 1.0, 0.0), (60.0, 1e5, 1.0, 0.0), (1.0, 0.0, 1e9, 0.0), (1.0, 0.0, 1e-6, 3.0)],
)
def test_a_fit_is_equivariant_under_changes_of_units(in_first_units, stretch, move, scale, offset):
    x, y, fit = in_first_units
    moved = mrgp.Observations(mrgp.points(x * stretch + move), y * scale + offset)
    other = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([moved]))
    p = mrgp.predict(fit, GRID)
    q = mrgp.predict(other, mrgp.points(GRID.x * stretch + move))
    np.testing.assert_allclose((q.mean - offset) / scale, p.mean, atol=1e-3)
    np.testing.assert_allclose(q.std / scale, p.std, rtol=1e-2)
    a, b = fit.parameters(), other.parameters()
    assert b["kernel.lengthscale"] / stretch == pytest.approx(a["kernel.lengthscale"], rel=1e-2)
    assert b["kernel.variance"] / scale**2 == pytest.approx(a["kernel.variance"], rel=3e-2)
