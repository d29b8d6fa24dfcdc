"""MR-GP against dense NumPy: evidence, posterior, bound, at the parameters a fit reports."""

import jax
import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.parameters import partition
from reference import gaussian

QUICK = mrgp.LBFGS(max_steps=8, starts=1, candidates=0)


def mixed_data(seed=0):
    """Points, boxes, boxes flat in one input, nodes; means and sums; missing values."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, (9, 2))
    lower = rng.uniform(0, 3, (6, 2))
    flat = rng.uniform(0, 3, (5, 2))
    cloud = rng.uniform(0, 4, (4, 3, 2))
    field = lambda p: 10 + np.sin(p[..., 0]) * np.cos(p[..., 1])  # noqa: E731
    y = field(x) + 0.1 * rng.standard_normal(9)
    y[2] = np.nan
    totals = mrgp.boxes(lower, lower + [0.5, 1.0], kind="sum")
    sides = mrgp.boxes(flat, flat + [1.0, 0.0])
    weights = rng.uniform(0.5, 2.0, (4, 3))
    clouds = mrgp.nodes(cloud, weights)
    return mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x), y, task="no2", name="sensors"),
            mrgp.Observations(totals, 0.5 * field(lower + 0.3), task="no2", name="totals"),
            mrgp.Observations(sides, 2 + 1.3 * field(flat), task="no2", name="hours"),
            mrgp.Observations(
                clouds, field(cloud).mean(1), task="no2", name="clouds", noise_variance=0.02
            ),
        ]
    )


def reference_of(fit, data, weights):
    """Write a fit's parameters, in the user's units, as the arrays the reference takes."""
    p = fit.parameters()
    rows, residual, ratios, noise, weight = [], [], [], [], []
    for o in data.dropna():
        parts = gaussian.functionals(o.support)
        ratio = p.get(f"ratio[{o.name}]", 1.0)
        mean = p["mean.constant"] * gaussian.totals(parts)
        if "mean.slope" in p:
            mean = mean + gaussian.moments(parts) @ p["mean.slope"]
        offset = p.get(f"offset[{o.name}]", 0.0) * gaussian.totals(parts)
        rows += parts
        residual.append(o.y - offset - ratio * mean)
        ratios.append(np.full(len(o.y), ratio))
        noise.append(p.get(f"noise_variance[{o.name}]", o.noise_variance) * np.ones(len(o.y)))
        weight.append(np.full(len(o.y), weights.get(o.name, 1.0)))
    return rows, *map(np.concatenate, (residual, ratios, noise, weight))


def slow_rbf(fit):
    p = fit.parameters()
    return lambda x, z: gaussian.rbf(x, z, p["kernel.lengthscale"], p["kernel.variance"])


def bound(model, data, fit, weights=None):
    f = mrgp.objective(model, data, weights)
    with jax.enable_x64(True):
        return float(jax.jit(f)(partition(fit.model)[0]))


@pytest.mark.parametrize(
    ("bias", "mean", "weights"),
    rest_thorough(
        [("none", "constant", {}), ("affine", "linear", {"sensors": 0.5, "totals": 0.25})], 1
    ),
)
def test_exact_evidence_and_posterior_match_the_dense_reference(bias, mean, weights):
    data = mixed_data()
    model = mrgp.MRGP(mrgp.RBF(), method="exact", bias=bias, mean=mean, priors=False)
    fit = mrgp.fit(model, data, weights=weights, optimiser=QUICK)
    kernel = slow_rbf(fit)
    rows, residual, ratios, noise, weight = reference_of(fit, data, weights)
    evidence, total = gaussian.exact(kernel, rows, residual, ratios, noise, weight)
    assert fit.history[-1] == pytest.approx(evidence, rel=1e-8)

    support = mrgp.boxes([[0.0, 0.0], [1.0, 1.0], [3.5, 2.0]], [[1.0, 0.5], [1.0, 3.0], [5.0, 2.0]])
    test = gaussian.functionals(support)
    expected, covariance = gaussian.posterior(kernel, rows, residual, ratios, total, test)
    p = fit.parameters()
    expected = expected + p["mean.constant"]
    if "mean.slope" in p:
        expected = expected + gaussian.moments(test) @ p["mean.slope"]
    joint = mrgp.predict(fit, support, joint=True)
    np.testing.assert_allclose(joint.mean, expected, rtol=1e-8)
    np.testing.assert_allclose(joint.covariance, covariance, atol=1e-8 * covariance.max())
    alone = mrgp.predict(fit, support)
    np.testing.assert_allclose(alone.variance, np.diag(covariance), atol=1e-8 * covariance.max())
    told = mrgp.predict(fit, support, source="hours")
    offset, ratio = p.get("offset[hours]", 0.0), p.get("ratio[hours]", 1.0)
    np.testing.assert_allclose(told.mean, offset + ratio * expected, rtol=1e-8)
    np.testing.assert_allclose(told.variance, ratio**2 * alone.variance, rtol=1e-8)


def test_collapsed_bound_and_posterior_match_the_dense_reference_at_any_inducing_inputs():
    data = mixed_data(1)
    z = np.random.default_rng(2).uniform(0, 4, (7, 2))
    weights = {"hours": 0.4}
    model = mrgp.MRGP(
        mrgp.RBF(), method="collapsed", bias="affine", inducing=z, priors=False, mean="linear"
    )
    fit = mrgp.fit(model, data, weights=weights, optimiser=QUICK)
    arguments = reference_of(fit, data, weights)
    expected = gaussian.collapsed(slow_rbf(fit), *arguments, z)
    assert bound(model, data, fit, weights) == pytest.approx(expected, rel=1e-8)
    exact, _ = gaussian.exact(slow_rbf(fit), *arguments)
    assert expected < exact

    # The posterior is that of the optimal q(u), under the tempered likelihood.
    kernel, p = slow_rbf(fit), fit.parameters()
    rows, residual, ratios, noise, weight = arguments
    noise = noise / weight
    kzz = kernel(z, z) + 1e-10 * kernel(z[:1], z[:1])[0, 0] * np.eye(7)
    points = [(row[None], np.ones(1)) for row in z]
    a = np.linalg.solve(kzz, (ratios[:, None] * gaussian.covariance(kernel, rows, points)).T).T
    s = np.linalg.inv(np.linalg.inv(kzz) + a.T @ np.diag(1 / noise) @ a)
    m = s @ a.T @ (residual / noise)
    x = np.array([[0.5, 0.5], [3.0, 1.0]])
    b = np.linalg.solve(kzz, kernel(z, x)).T
    prediction = mrgp.predict(fit, mrgp.points(x))
    mean = p["mean.constant"] + x @ p["mean.slope"] + b @ m
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-7)
    variance = np.diag(kernel(x, x) - b @ kernel(z, x) + b @ s @ b.T)
    np.testing.assert_allclose(prediction.variance, variance, rtol=1e-6)


@pytest.mark.parametrize(
    "kind",
    rest_thorough(
        [mrgp.Matern12, mrgp.Matern32, lambda *a, **k: mrgp.Matern52(*a, product=True, **k)], 0
    ),
)
def test_inducing_inputs_at_all_nodes_make_collapsed_exact(kind):
    rng = np.random.default_rng(3)
    x, cloud = rng.uniform(0, 5, (12, 2)), rng.uniform(0, 5, (6, 4, 2))
    data = mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="a", noise_variance=0.01),
            mrgp.Observations(
                mrgp.nodes(cloud), np.sin(cloud[..., 0]).mean(1), name="b", noise_variance=0.02
            ),
        ]
    )
    z = np.concatenate([x, cloud.reshape(-1, 2)])
    kernel = kind(mrgp.fixed(1.5), variance=mrgp.fixed(0.8))
    exact = mrgp.fit(mrgp.MRGP(kernel, method="exact", mean="zero"), data)
    sparse = mrgp.fit(mrgp.MRGP(kernel, method="collapsed", mean="zero", inducing=z), data)
    assert sparse.history[-1] == pytest.approx(exact.history[-1], abs=1e-6)
    support = mrgp.points(rng.uniform(0, 5, (20, 2)))
    a, b = mrgp.predict(exact, support), mrgp.predict(sparse, support)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-6)
    np.testing.assert_allclose(a.variance, b.variance, atol=1e-6)


def test_auto_is_exact_for_small_and_collapsed_for_large_data():
    x = np.linspace(0, 1, 4100)[:, None]
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), np.sin(9 * x[:, 0]))])
    assert mrgp.MRGP(mrgp.RBF()).build(data).variational is not None
    small = mrgp.Dataset([data.observations[0][:100]])
    assert mrgp.MRGP(mrgp.RBF()).build(small).variational is None
    # Along one input a Matern kernel needs no inducing inputs.
    assert mrgp.MRGP().build(data).variational is None


STRATEGIES = ["kmeans", "grid", "subset", "greedy"]


def placed_by(strategy):
    inducing = mrgp.Inducing(9, strategy=strategy)
    return mrgp.MRGP(mrgp.RBF(), method="collapsed", inducing=inducing, priors=False)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_inducing_inputs_are_placed_among_the_data(strategy):
    data = mixed_data(4)
    sparse = mrgp.objective(placed_by(strategy), data)
    placed = np.asarray(sparse.frozen.solver.locations.raw)
    assert len(np.unique(placed, axis=0)) == len(placed) <= 9
    lower, upper = (
        np.min([s.bounds[0].min(0) for s in data.supports], 0),
        np.max([s.bounds[1].max(0) for s in data.supports], 0),
    )
    centre = (lower + upper) / 2
    assert np.all(placed + centre >= lower - 1e-9)
    assert np.all(placed + centre <= upper + 1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_placement_of_inducing_inputs_gives_a_bound_below_the_evidence(strategy):
    data = mixed_data(4)
    exact = mrgp.objective(mrgp.MRGP(mrgp.RBF(), method="exact", priors=False), data)
    sparse = mrgp.objective(placed_by(strategy), data)
    with jax.enable_x64(True):
        assert float(jax.jit(sparse)(sparse.start)) < float(jax.jit(exact)(exact.start))


@pytest.mark.thorough
def test_greedy_placement_explains_more_than_a_random_subset():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(0, 0.05, (200, 1)), rng.uniform(-5, 5, (40, 1))])
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]))])

    def value(strategy):
        inducing = mrgp.Inducing(12, strategy=strategy)
        f = mrgp.objective(mrgp.MRGP(mrgp.RBF(), method="collapsed", inducing=inducing), data)
        with jax.enable_x64(True):
            return float(jax.jit(f)(f.start))

    assert value("greedy") > value("subset")


@pytest.mark.thorough
def test_trained_inducing_inputs_raise_the_bound():
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 10, (80, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(80)
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)])
    kernel = mrgp.RBF(lengthscale=mrgp.fixed(0.7), variance=mrgp.fixed(1.0))

    def best(train):
        inducing = mrgp.Inducing(8, strategy="subset", train=train)
        model = mrgp.MRGP(kernel, method="collapsed", inducing=inducing)
        return mrgp.fit(model, data, optimiser=mrgp.LBFGS(starts=1, candidates=0)).history[-1]

    assert best(True) > best(False) + 1.0


@pytest.mark.thorough
def test_bias_is_recovered():
    rng = np.random.default_rng(7)
    x = np.linspace(0, 10, 60)[:, None]
    truth = lambda t: 5 + np.sin(t) * 2  # noqa: E731
    lower = np.arange(0.0, 10.0, 0.5)[:, None]
    inside = truth(lower + np.linspace(0, 0.5, 21)).mean(1)
    data = mrgp.Dataset(
        [
            mrgp.Observations(
                mrgp.points(x), truth(x[:, 0]) + 0.05 * rng.standard_normal(60), name="a"
            ),
            mrgp.Observations(mrgp.boxes(lower, lower + 0.5), 3 + 0.6 * inside, name="b"),
        ]
    )
    fit = mrgp.fit(mrgp.MRGP(bias="affine"), data)
    p = fit.parameters()
    assert p["ratio[b]"] == pytest.approx(0.6, abs=0.03)
    assert p["offset[b]"] == pytest.approx(3.0, abs=0.2)
    grid = mrgp.points(np.linspace(1, 9, 9)[:, None])
    seen = mrgp.predict(fit, grid, source="b").mean
    np.testing.assert_allclose(seen, 3 + 0.6 * truth(np.linspace(1, 9, 9)), atol=0.1)
    latent = mrgp.predict(fit, grid)
    np.testing.assert_allclose(mrgp.predict(fit, grid, source="a").mean, latent.mean)
    np.testing.assert_allclose(
        mrgp.predict(fit, grid, source="b").variance, p["ratio[b]"] ** 2 * latent.variance
    )


def test_default_priors_can_be_switched_off():
    data = mixed_data()
    with_priors = mrgp.MRGP().build(data)
    without = mrgp.MRGP(priors=False).build(data)
    assert with_priors.kernel.lengthscale.prior is not None
    assert without.kernel.lengthscale.prior is None
    assert without.noise.learned[data["sensors"].process].prior is None


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"method": "magic"}, "method= is one of"),
        ({"bias": "cubic"}, "bias= is one of"),
        ({"mean": "quadratic"}, "mean= is one of"),
        ({"kernel": 3.0}, "takes a kernel such as"),
        ({"inducing": 0}, "at least 1"),
        ({"inducing": "middle"}, "strategy is one of"),
        ({"inducing": np.zeros(3)}, r"shape \[m, d\]"),
    ],
)
def test_wrong_recipes_are_refused_when_written(arguments, text):
    with pytest.raises((ValueError, TypeError), match=text):
        mrgp.MRGP(**arguments)


def test_wrong_fits_name_what_is_there():
    data = mixed_data()
    with pytest.raises(
        ValueError, match=r"target='satellite' is no source; the sources are \('sensors'"
    ):
        mrgp.fit(mrgp.MRGP(target="satellite"), data)
    with pytest.raises(ValueError, match="locations have 3 inputs and the data have 2"):
        mrgp.fit(mrgp.MRGP(method="collapsed", inducing=np.zeros((4, 3))), data)
    two = mrgp.Dataset([*data, mrgp.Observations(mrgp.points([[0.0, 0.0]]), [1.0], task="pm10")])
    with pytest.raises(ValueError, match=r"models one task, and the data have \('no2', 'pm10'\)"):
        mrgp.fit(mrgp.MRGP(), two)


@pytest.mark.thorough
def test_noise_of_totals_is_recovered_at_any_size_of_region():
    rng = np.random.default_rng(8)
    for width in (0.01, 1.0, 100.0):
        lower = np.arange(60.0) * width
        field = 5 + np.sin(np.arange(60.0) / 5)
        y = width * (field + 0.1 * rng.standard_normal(60))
        support = mrgp.intervals(lower, lower + width, kind="sum")
        fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([mrgp.Observations(support, y)]))
        sd = np.sqrt(fit.parameters()["noise_variance[source]"]) / width
        assert sd == pytest.approx(0.1, rel=0.35)


def test_auto_counts_quadrature_nodes_and_honours_given_inducing_inputs():
    corners = np.random.default_rng(9).uniform(0, 10, (300, 2))
    cells = mrgp.Observations(mrgp.boxes(corners, corners + 1), np.sin(corners[:, 0]))
    data = mrgp.Dataset([cells])
    assert mrgp.MRGP(mrgp.Matern32(product=True)).build(data).variational is None
    assert mrgp.MRGP(mrgp.Matern32()).build(data).variational is not None
    assert mrgp.MRGP(inducing=20).build(data).variational is not None


def test_linear_functions_are_learned_about_any_origin():
    x = np.linspace(100, 110, 20)[:, None]
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), 3 * x[:, 0] - 7, noise_variance=1e-4)])
    far = mrgp.points([[0.0], [200.0]])
    for kernel in (mrgp.Linear(), mrgp.Linear(origin=50.0), mrgp.Linear() + mrgp.Constant()):
        fit = mrgp.fit(mrgp.MRGP(kernel), data)
        np.testing.assert_allclose(mrgp.predict(fit, far).mean, [-7.0, 593.0], rtol=0.02, atol=0.5)


def test_two_sensors_side_by_side_do_not_set_the_scale():
    x = np.linspace(0, 100, 26)[:, None]
    many = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0] / 10), name="many")
    near = mrgp.Observations(mrgp.points([[50.0], [50.0001]]), [-0.96, -0.95], name="near")
    alone = mrgp.MRGP().build(mrgp.Dataset([many])).kernel.lengthscale.value
    both = mrgp.MRGP().build(mrgp.Dataset([many, near])).kernel.lengthscale.value
    assert both == pytest.approx(alone, rel=0.1)


def variances(kernel):
    """Return (value, trained) of each factor's variance once bound to data of variance 4."""
    x = np.array([[0.0], [10.0]])
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), [-2.0, 2.0])])
    factors = mrgp.MRGP(kernel).build(data).kernel.kernels
    return [(float(np.squeeze(k.variance.value)), k.variance.trainable) for k in factors]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (mrgp.RBF() * mrgp.Periodic(5), [(4.0, True), (1.0, False)]),
        (mrgp.RBF(variance=mrgp.fixed(1.0)) * mrgp.Periodic(5), [(1.0, False), (4.0, True)]),
        (mrgp.RBF() * mrgp.Periodic(5, variance=2.0), [(1.0, False), (2.0, True)]),
        (mrgp.RBF() * mrgp.Linear(), [(4.0, True), (0.01, False)]),
        (mrgp.Linear() * mrgp.RBF(), [(0.04, True), (1.0, False)]),
    ],
)
def test_a_product_trains_one_variance(kernel, expected):
    assert variances(kernel) == [(pytest.approx(v), t) for v, t in expected]


@pytest.mark.parametrize(
    "kernel",
    [
        mrgp.RBF(variance=[1.0, 2.0]),
        mrgp.Periodic([24.0, 168.0]),
        mrgp.Periodic(24.0, lengthscale=(1.0, 2.0)),
        mrgp.White((1.0, 2.0)),
        mrgp.Constant((1.0, 2.0)),
    ],
)
def test_numbers_that_must_be_single_are(kernel):
    with pytest.raises(ValueError, match="must be one number; got shape"):
        kernel([[0.0, 0.0], [1.0, 1.0]])


def test_a_failed_model_without_anything_to_train_is_not_called_converged():
    x = np.arange(3.0)[:, None]
    seen = mrgp.Observations(mrgp.points(x), [0.0, 1.0, 2.0], noise_variance=0.1)
    kernel = NotANumber(mrgp.fixed(1.0), variance=mrgp.fixed(1.0))
    with pytest.raises(mrgp.FitError, match="not finite, and there is nothing to train"):
        mrgp.fit(mrgp.MRGP(kernel, mean="zero", method="exact"), mrgp.Dataset([seen]))


class NotANumber(mrgp.RBF):
    """A kernel that is not a number anywhere."""

    def profile(self, squared):
        return super().profile(squared) * np.nan


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mrgp.VBAgg(method="magic"), "method= is one of"),
        (lambda: mrgp.CenterPoint("x"), "takes a model such as"),
        (lambda: mrgp.MRGP(quadrature=5), "takes a rule such as"),
        (lambda: mrgp.MRGP(method="exact", inducing=5), "has no use with"),
        (lambda: mrgp.RBF(lengthscale=-1.0), "lengthscale must be positive and finite; got -1.0"),
        (lambda: mrgp.Periodic(0), "period must be positive and finite; got 0"),
        (lambda: mrgp.LBFGS(max_steps=2.5), "max_steps must be a whole number"),
        (lambda: mrgp.LogNormal(np.array(-1.0), 1.0), "must be positive and finite"),
        (lambda: mrgp.Inducing(locations=np.zeros(3)), r"shape \[m, d\]"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_mistakes_are_refused_when_written(make, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make()


def test_an_interrupted_fit_keeps_its_history_and_other_errors_end_the_progress():
    class Stop:
        ended = False

        def start(self, title, total):
            pass

        def update(self, step, text):
            if step == 3:
                raise self.error

        def finish(self, text):
            self.ended = True

    x = np.linspace(0, 5, 17)[:, None]
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]))])
    stop = Stop()
    stop.error = KeyboardInterrupt()
    assert len(mrgp.fit(mrgp.MRGP(), data, progress=stop).history) == 3
    stop = Stop()
    stop.error = RuntimeError("mine")
    with pytest.raises(RuntimeError, match="mine"):
        mrgp.fit(mrgp.MRGP(), data, progress=stop)
    assert stop.ended


@pytest.mark.usefixtures("as_users_see_it")
def test_weights_reach_no_vbagg():
    x = np.arange(3.0)[:, None]
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), [0.0, 1.0, 2.0], name="s")])
    for model in (mrgp.VBAgg(), mrgp.CenterPoint(mrgp.VBAgg())):
        with pytest.raises(ValueError, match="all weights one by definition"):
            mrgp.objective(model, data, {"s": 0.5})
    with pytest.raises(TypeError, match="takes a mapping such as"):
        mrgp.fit(mrgp.MRGP(), data, weights=[0.5])
    with pytest.raises(TypeError, match=r"Write MRGP\(\)"):
        mrgp.fit(mrgp.MRGP, data)
