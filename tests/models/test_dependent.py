"""Averages that take over the errors of single values: against dense NumPy (theory 7.2)."""

import jax
import numpy as np
import pytest

import mrgp
from mrgp.data import Scaling
from reference import gaussian, mcmc
from shorthand import build_objective

QUICK = mrgp.LBFGS(max_steps=5, starts=1, candidates=0)
PAIRS = {"coarse": "fine"}


def overlapping(seed=0, drop=()):
    """Ten points, averages that overlap, one node that no point observed, padding."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(10, 14, 10))
    y = np.sin(x) + 0.3 * rng.standard_normal(10)
    nodes = np.array(
        [[x[0], x[1], x[1]], [x[1], x[2], x[3]], [x[8], 13.3, x[0]], [12.9, 13.3, x[4]]]
    )
    weights = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.4, 0.6, 0.0], [0.5, 0.25, 0.25]])
    z = np.array([0.4, -0.2, 0.1, 0.3])
    y[list(drop)] = np.nan
    data = mrgp.Dataset(
        [
            mrgp.Observations(mrgp.nodes(nodes[:, :, None], weights), z, name="coarse"),
            mrgp.Observations(mrgp.points(x[:, None]), y, name="fine"),
        ]
    )
    return data, x, y, nodes, weights, z


def reference_of(fit, x, y, nodes, weights, z):
    """Return functionals, residuals and noise, fine values first."""
    p, seen = fit.parameters(), np.isfinite(y)
    rows = [(v[None, None], np.ones(1)) for v in x[seen]]
    rows += [(n[:, None], w) for n, w in zip(nodes, weights, strict=True)]
    noise = mcmc.dependent_noise(
        x[seen], nodes, weights, p["noise_variance[fine]"], p["noise_variance[coarse]"]
    )
    residual = np.concatenate([y[seen], z]) - p["mean.constant"] * gaussian.totals(rows)
    kernel = lambda a, b: gaussian.rbf(a, b, p["kernel.lengthscale"], p["kernel.variance"])  # noqa: E731
    return rows, residual, noise, kernel


@pytest.mark.parametrize("drop", [(), (1, 8)])
def test_evidence_and_posterior_match_dense_numpy(drop):
    data, *arrays = overlapping(drop=drop)
    recipe = mrgp.Dependent(mrgp.MRGP(mrgp.RBF(), priors=False), PAIRS)
    fit = mrgp.fit(recipe, data, optimiser=QUICK)
    rows, residual, noise, kernel = reference_of(fit, *arrays)
    assert np.isclose(fit.history[-1], mcmc.log_evidence(rows, residual, noise, kernel))
    test = np.array([10.5, 12.0, 15.0])
    total = gaussian.covariance(kernel, rows, rows) + noise
    places = [(v[None, None], np.ones(1)) for v in test]
    mean, cov = gaussian.posterior(kernel, rows, residual, np.ones(len(rows)), total, places)
    pred = mrgp.predict(fit, mrgp.points(test[:, None]), joint=True)
    assert np.allclose(pred.mean, mean + fit.parameters()["mean.constant"])
    assert np.allclose(pred.covariance, cov)


def test_averages_of_unobserved_places_are_mrgp_with_a_larger_noise():
    """Disjoint pairs that no point observed: their averaged errors are noise like any other."""
    rng = np.random.default_rng(1)
    x, nodes = np.arange(8.0), np.arange(0.25, 8, 0.5).reshape(-1, 2)
    y, z = rng.standard_normal(8), rng.standard_normal(len(nodes))
    data = mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x[:, None]), y, name="fine"),
            mrgp.Observations(mrgp.nodes(nodes[:, :, None]), z, name="coarse"),
        ]
    )
    kernel = mrgp.RBF(mrgp.fixed(1.3), variance=mrgp.fixed(0.8))

    def evidence(wrap, coarse):
        noise = {"fine": mrgp.fixed(0.5), "coarse": mrgp.fixed(coarse)}
        f = mrgp.objective(wrap(mrgp.MRGP(kernel, noise=noise)), data)
        with jax.enable_x64(True):
            return float(f(f.start))

    dependent = evidence(lambda m: mrgp.Dependent(m, PAIRS), 0.1)
    assert np.isclose(dependent, evidence(lambda m: m, 0.1 + 0.5 / 2), rtol=1e-12)
    assert not np.isclose(dependent, evidence(lambda m: m, 0.1))


def test_known_noise_is_used_where_it_is_known_and_its_mean_elsewhere():
    data, x, y, nodes, weights, z = overlapping()
    known = np.linspace(0.1, 0.3, 10)
    data = mrgp.Dataset([data["coarse"], data["fine"].replace(noise_variance=known)])
    recipe = mrgp.Dependent(mrgp.MRGP(mrgp.RBF(), priors=False), PAIRS)
    fit = mrgp.fit(recipe, data, optimiser=QUICK)
    p = fit.parameters()
    places = np.append(x, [13.3, 12.9])
    share = np.zeros((14, 12))
    share[:10, :10] = np.eye(10)
    for j in range(4):
        for node, w in zip(nodes[j], weights[j], strict=True):
            share[10 + j, np.argmin(np.abs(places - node))] += w
    noise = share @ np.diag(np.append(known, [known.mean()] * 2)) @ share.T
    noise[10:, 10:] += p["noise_variance[coarse]"] * np.eye(4)
    rows = [(v[None, None], np.ones(1)) for v in x]
    rows += [(n[:, None], w) for n, w in zip(nodes, weights, strict=True)]
    kernel = lambda a, b: gaussian.rbf(a, b, p["kernel.lengthscale"], p["kernel.variance"])  # noqa: E731
    residual = np.concatenate([y, z]) - p["mean.constant"]
    assert np.isclose(fit.history[-1], mcmc.log_evidence(rows, residual, noise, kernel))


def test_a_new_average_has_its_own_noise_and_averaged_errors(tmp_path):
    x = np.arange(8.0)
    fine = mrgp.Observations(mrgp.points(x[:, None]), np.sin(x), name="fine")
    coarse = mrgp.Observations(mrgp.nodes(x.reshape(-1, 2, 1)), x[:4], name="coarse")
    noise = {"fine": mrgp.fixed(0.5), "coarse": mrgp.fixed(0.1)}
    recipe = mrgp.Dependent(mrgp.MRGP(mrgp.RBF(), noise=noise), PAIRS)
    fit = mrgp.fit(recipe, mrgp.Dataset([fine, coarse]), optimiser=QUICK)
    where = mrgp.nodes([[[0.5], [2.5]]])
    quiet = mrgp.predict(fit, where, source="coarse")
    loud = mrgp.predict(fit, where, source="coarse", noise=True)
    assert np.allclose(loud.variance - quiet.variance, 0.1 + 0.5 / 2)
    single = mrgp.predict(fit, mrgp.points([[0.5]]), source="fine", noise=True)
    assert np.allclose(single.variance - mrgp.predict(fit, mrgp.points([[0.5]])).variance, 0.5)
    assert "coarse averages the values of fine, errors included" in fit.summary()
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.predict(mrgp.load(tmp_path / "fit"), where, source="coarse", noise=True)
    assert np.array_equal(again.mean, loud.mean)
    assert np.array_equal(again.variance, loud.variance)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: mrgp.Dependent(mrgp.VBAgg(), PAIRS), TypeError, r"model= takes mrgp.MRGP"),
        (lambda: mrgp.Dependent(mrgp.MRGP()), TypeError, "averages= maps each source"),
        (lambda: mrgp.Dependent(mrgp.MRGP(method="svgp"), PAIRS), ValueError, "leave method="),
        (lambda: mrgp.Dependent(mrgp.MRGP(bias="offset"), PAIRS), ValueError, "no bias of their"),
        (
            lambda: mrgp.Dependent(averages={"a": "b", "b": "c"}),
            ValueError,
            "'a' averages 'b', which averages 'c'",
        ),
    ],
)
def test_recipes_that_make_no_sense_are_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.usefixtures("as_users_see_it")
def test_data_that_do_not_fit_the_recipe_are_refused():
    data, x, y, *_ = overlapping()
    build = mrgp.Dependent(averages=PAIRS).build
    with pytest.raises(ValueError, match="'daily', which is no source"):
        mrgp.Dependent(averages={"daily": "fine"}).build(data)
    boxes = mrgp.Observations(mrgp.intervals([10.0, 11.0], [11.0, 12.0]), [0.0, 1.0], name="coarse")
    with pytest.raises(ValueError, match="Give this source mrgp"):
        build(mrgp.Dataset([boxes, data["fine"]]))
    with pytest.raises(ValueError, match="this source needs mrgp"):
        build(mrgp.Dataset([data["coarse"], boxes.replace(name="fine")]))
    twice = mrgp.Observations(
        mrgp.points(np.append(x, x[0])[:, None]), np.append(y, 0), name="fine"
    )
    with pytest.raises(ValueError, match="1 places have several values"):
        build(mrgp.Dataset([data["coarse"], twice]))
    many = mrgp.Observations(
        mrgp.points(np.linspace(0, 1, 4100)[:, None]), np.zeros(4100), name="fine"
    )
    with pytest.raises(ValueError, match=r"the data have 4104.*MRGP\(method=\"exact\"\)"):
        build(mrgp.Dataset([data["coarse"], many]))
    for weights in ({"fine": 0.5}, "auto"):
        with pytest.raises(ValueError, match="has all weights one"):
            mrgp.fit(mrgp.Dependent(averages=PAIRS), data, weights=weights)


def test_a_part_of_the_data_is_refused():
    data, x, y, *_ = overlapping()
    fine = mrgp.Observations(mrgp.points(x[:5, None]), y[:5], name="fine")
    part = mrgp.Dataset([data["coarse"], fine])
    with jax.enable_x64(True):
        model = mrgp.Dependent(averages=PAIRS).build(data)
        f = build_objective(model, part, Scaling.of(data), None)
        with pytest.raises(ValueError, match="built for 14 values and is given 9"):
            f(f.start)
