"""Samplers against grids and exact Gaussians, against one another, and as users meet them."""

import functools
import math
import sys
import types

import jax
import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.inference.mcmc import draws as drawing
from mrgp.inference.mcmc import effective_sample_size
from mrgp.inference.mcmc.target import Target
from reference import gaussian, mcmc
from shorthand import build_objective

# Short chains do for most tests.
pytestmark = pytest.mark.filterwarnings("ignore:sample_posterior. R-hat")

METHODS = ["marginal", "gibbs", "exact gibbs", "nuts"]
NOISE_PRIOR, LENGTH_PRIOR = (0.1, 1.0), (1.0, 0.7)


def data_of(n=8, seed=0):
    rng = np.random.default_rng(seed)
    x = np.arange(float(n))
    y = 1.2 * np.sin(x) + 0.3 * rng.standard_normal(n)
    z = y.reshape(-1, 2).mean(1) + 0.1 * rng.standard_normal(n // 2)
    return mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x[:, None]), y, name="fine"),
            mrgp.Observations(mrgp.nodes(x.reshape(-1, 2, 1)), z, name="coarse"),
        ]
    )


def recipe_of(lengthscale=None, fine=None):
    """Everything fixed, but for what is given."""
    kernel = mrgp.RBF(lengthscale or mrgp.fixed(1.1), variance=mrgp.fixed(1.0))
    noise = {"fine": fine or mrgp.fixed(0.1), "coarse": mrgp.fixed(0.05)}
    return mrgp.MRGP(kernel, noise=noise, mean="zero")


def two_free():
    lengthscale = mrgp.positive(1.0, mrgp.LogNormal(*LENGTH_PRIOR))
    return recipe_of(lengthscale, mrgp.positive(0.1, mrgp.LogNormal(*NOISE_PRIOR)))


def draw(model, data, method, **options):
    if method == "nuts":
        pytest.importorskip("blackjax", reason="the extra mcmc is not installed")
    exact = method == "exact gibbs"
    return mrgp.sample_posterior(
        model, data, "gibbs" if exact else method, exact_f=exact, progress=None, **options
    )


def within(draws, mean, errors=4):
    """Tell whether the mean of draws [c, n] is within some Monte Carlo errors of a number."""
    error = draws.std() / math.sqrt(effective_sample_size(draws))
    return abs(draws.mean() - mean) < errors * error


@functools.cache
def grid_means(weights=(1.0, 1.0), dependent=False):
    """Return the posterior means of log lengthscale and log noise, by brute force."""
    fine, coarse = data_of()
    rows = gaussian.functionals(fine.support) + gaussian.functionals(coarse.support)
    y = np.concatenate([fine.y, coarse.y])
    counts = [len(fine), len(coarse)]
    weight = np.repeat(weights, counts)

    def density(log_length, log_noise):
        length, noise = math.exp(log_length), math.exp(log_noise)
        prior = mcmc.log_normal_prior(length, *LENGTH_PRIOR)
        prior += mcmc.log_normal_prior(noise, *NOISE_PRIOR)
        kernel = lambda a, b: gaussian.rbf(a, b, length, 1.0)  # noqa: E731
        if dependent:
            nodes, shares = np.asarray(coarse.support.x), np.asarray(coarse.support.weights)
            points = np.asarray(fine.support.x)
            errors = mcmc.dependent_noise(points, nodes, shares, noise, 0.05)
            return prior + mcmc.log_evidence(rows, y, errors, kernel)
        each = np.repeat([noise, 0.05], counts)
        return prior + gaussian.exact(kernel, rows, y, np.ones(len(y)), each, weight)[0]

    lengths, noises = np.linspace(-2.5, 2.0, 26), np.linspace(-7, 1, 26)
    chances = mcmc.grid_posterior(density, lengths, noises)
    return chances.sum(1) @ lengths, chances.sum(0) @ noises


def logs(chains):
    lengths = np.log(chains.parameters["kernel.lengthscale"])
    return lengths, np.log(chains.parameters["noise_variance[fine]"])


def long_enough(method):
    return {"warmup": 200, "samples": 200} if method == "nuts" else {"warmup": 400, "samples": 800}


@pytest.mark.parametrize("method", rest_thorough(METHODS, "marginal", "gibbs"))
def test_hyperparameters_follow_the_grid(method):
    data = data_of()
    chains = draw(two_free(), data, method, **long_enough(method))
    assert chains.status.code == "converged"
    for draws, mean in zip(logs(chains), grid_means(), strict=True):
        assert within(draws, mean)
        assert effective_sample_size(draws) > 200


@pytest.mark.parametrize("method", rest_thorough(["marginal", "gibbs"], "gibbs"))
def test_weights_temper_the_likelihood_constants_included(method):
    data, weights = data_of(), {"fine": 0.5, "coarse": 0.2}
    chains = draw(two_free(), data, method, weights=weights, **long_enough(method))
    tempered = grid_means((0.5, 0.2))
    for draws, mean in zip(logs(chains), tempered, strict=True):
        assert within(draws, mean)
    assert not within(logs(chains)[1], grid_means()[1])
    assert "composite weight 0.2" in chains.summary()


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["marginal", "gibbs"])
def test_the_dependent_posterior_follows_the_grid(method):
    data = data_of()
    recipe = mrgp.Dependent(two_free(), {"coarse": "fine"})
    chains = draw(recipe, data, method, **long_enough(method))
    for draws, mean in zip(logs(chains), grid_means(dependent=True), strict=True):
        assert within(draws, mean)


@pytest.mark.parametrize("method", rest_thorough(METHODS, "exact gibbs", "nuts"))
def test_with_hyperparameters_fixed_the_field_is_the_exact_gaussian(method):
    data, recipe = data_of(), recipe_of()
    where = mrgp.points([[0.0], [3.0], [4.5], [9.0]])
    exact = mrgp.predict(mrgp.fit(recipe, data), where)
    chains = draw(recipe, data, method, warmup=100, samples=400)
    found = mrgp.predict(chains, where, samples=1600)
    if method == "marginal":
        assert np.allclose(found.mean, exact.mean)
        assert np.allclose(found.variance, exact.variance)
        return
    for i in range(4):
        draws = found.means[:, i].reshape(4, 400)
        assert within(draws, exact.mean[i])
        assert np.isclose(found.variance[i], exact.variance[i], rtol=0.25)


def test_the_joint_density_is_the_marginal_one_with_a_white_field():
    """What NUTS follows: integrating the white field out leaves the log evidence."""
    data = data_of()
    for recipe in (two_free(), mrgp.Dependent(two_free(), {"coarse": "fine"})):
        with jax.enable_x64(True):
            scaling = mrgp.data.Scaling.of(data)
            objective = build_objective(recipe.build(data), data, scaling, None)
            target = Target.of(objective, latent=True)
            noise = jax.random.normal(jax.random.key(0), (8,))
            theta = target.start + 0.3
            joint, _ = target.log_joint(theta, noise)
            assert np.isclose(joint + 0.5 * noise @ noise, target.log_marginal(theta))


@pytest.mark.thorough
def test_means_biases_and_boxes_are_sampled_too():
    """All samplers agree on a recipe with everything in it, on other units."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 6, 10)
    start = np.arange(6.0)
    y = 50 + 10 * np.sin(x) + rng.standard_normal(10)
    sensors = mrgp.Observations(mrgp.points(x[:, None]), y, name="sensors")
    means = 60 + 10 * (np.cos(start) - np.cos(start + 1)) + rng.standard_normal(6)
    boxes = mrgp.Observations(mrgp.intervals(start, start + 1), means, name="boxes")
    data = mrgp.Dataset([sensors, boxes])
    recipe = mrgp.MRGP(mrgp.RBF(), bias="offset")
    found = [draw(recipe, data, m, warmup=300, samples=300) for m in ("marginal", "gibbs")]
    quick = mrgp.fit(recipe, data, optimiser=mrgp.LBFGS(max_steps=1, starts=1, candidates=0))
    assert set(found[0].parameters) == set(quick.parameters())
    for name in ("offset[boxes]", "kernel.lengthscale"):
        a, b = (chains.parameters[name].reshape(4, 300) for chains in found)
        error = math.hypot(*(d.std() / math.sqrt(effective_sample_size(d)) for d in (a, b)))
        assert abs(a.mean() - b.mean()) < 4 * error
    assert 5 < found[1].parameters["offset[boxes]"].mean() < 15
    where = mrgp.intervals([1.0], [2.0])
    for source, noise in ((None, False), ("boxes", False), ("boxes", True)):
        a, b = (mrgp.predict(c, where, source=source, noise=noise) for c in found)
        assert np.allclose(a.mean, b.mean, atol=1.0)
        assert np.allclose(a.std, b.std, rtol=0.5)


def test_predictions_are_mixtures_over_draws():
    data = data_of()
    chains = draw(two_free(), data, "marginal", warmup=100, samples=50)
    where = mrgp.points([[0.5], [20.0]])
    pred = chains.predict(where, source="fine", noise=True, samples=20)
    assert pred.means.shape == (20, 2)
    theta = chains.parameters["noise_variance[fine]"].reshape(-1)[::10]
    quiet = mrgp.predict(chains, where, samples=20)
    assert np.allclose(pred.variances - quiet.variances, theta[:, None])
    assert np.allclose(pred.cdf(pred.quantile(0.9)), 0.9)
    assert np.isfinite(mrgp.evaluate(pred, np.ones(2))["nlpd"])


def test_one_key_gives_one_answer():
    data, sizes = data_of(), {"warmup": 50, "samples": 20, "chains": 2}
    first, again = (draw(two_free(), data, "marginal", key=3, **sizes) for _ in range(2))
    other = draw(two_free(), data, "marginal", key=4, **sizes)
    assert np.array_equal(first.theta, again.theta)
    assert not np.array_equal(first.theta, other.theta)


class StopAfter:
    """A progress that is Ctrl-C."""

    def __init__(self, calls):
        self.calls = calls

    def start(self, title, total):
        self.told = []

    def update(self, step, text):
        self.told.append((step, text))
        if len(self.told) == self.calls:
            raise KeyboardInterrupt

    def finish(self, text):
        self.ended = text


def test_an_interrupted_run_keeps_its_draws():
    stop = StopAfter(4)
    chains = mrgp.sample_posterior(
        two_free(), data_of(), warmup=100, samples=500, progress=stop, chains=2
    )
    assert chains.status.code == "interrupted"
    assert len(chains) == 100
    assert stop.told[-1] == (200, "draws, 200 of 600")
    assert stop.ended == "interrupted"
    assert "stopped by the user after 100 draws" in chains.summary()
    with pytest.raises(KeyboardInterrupt):
        mrgp.sample_posterior(two_free(), data_of(), progress=StopAfter(1), chains=2)


def test_the_summary_is_a_table_with_warnings_in_words():
    chains = draw(two_free(), data_of(), "marginal", warmup=0, samples=10, chains=2)
    text = chains.summary()
    assert "R-hat" in text
    assert "fixed" in text
    assert "raise samples=" in text
    assert chains.r_hat()["kernel.lengthscale"].shape == ()
    assert np.isnan(chains.r_hat()["kernel.variance"])
    assert chains.effective_sample_size()["noise_variance[fine]"] < 100
    assert repr(chains).startswith("Chains(marginal, 2 chains of 10 draws")


@pytest.mark.parametrize(("version", "positional"), [("0.22.0", False), ("1.0.0", True)])
def test_draws_go_to_arviz_of_either_kind(version, positional, monkeypatch):
    chains = draw(two_free(), data_of(), "marginal", warmup=0, samples=10, chains=2)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        chains.to_arviz()
    fake = types.ModuleType("arviz")
    fake.__version__, fake.from_dict = version, lambda *a, **k: (a, k)
    monkeypatch.setitem(sys.modules, "arviz", fake)
    given, named = chains.to_arviz()
    posterior = given[0]["posterior"] if positional else named["posterior"]
    assert posterior["kernel.lengthscale"].shape == (2, 10)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"method": "hmc"}, ValueError, "method= is one of .*'marginal'"),
        ({"exact_f": True}, ValueError, 'belongs to method="gibbs"'),
        ({"samples": 3}, ValueError, "samples= is a whole number, at least 4"),
        ({"chains": 0}, ValueError, "chains= is a whole number, at least 1"),
        ({"data": data_of()["fine"]}, TypeError, "takes a Dataset as second argument"),
        ({"model": mrgp.MRGP}, TypeError, r"Write MRGP\(\)"),
        ({"model": mrgp.MRGP(inducing=5)}, ValueError, "sample_posterior is exact"),
        (
            {"model": mrgp.MRGPRN()},
            TypeError,
            "one latent field, MRGP and Dependent. Fit others with mrgp.fit",
        ),
        ({"model": mrgp.VBAgg(), "weights": {"fine": 0.5}}, ValueError, "weights one"),
    ],
)
def test_what_cannot_be_sampled_is_refused(change, error, text):
    arguments = {"model": two_free(), "data": data_of()} | change
    with pytest.raises(error, match=text):
        mrgp.sample_posterior(**arguments)


@pytest.mark.usefixtures("as_users_see_it")
def test_other_refusals_say_what_to_do(monkeypatch):
    data = data_of()
    chains = draw(two_free(), data, "marginal", warmup=0, samples=10, chains=2)
    with pytest.raises(ValueError, match="joint=True is for fits"):
        mrgp.predict(chains, mrgp.points([[0.0]]), joint=True)
    with pytest.raises(ValueError, match="no source of task"):
        mrgp.predict(chains, mrgp.points([[0.0]]), source="nobody")
    monkeypatch.setattr("mrgp.inference.mcmc.target.MOST_PLACES", 5)
    with pytest.raises(ValueError, match=r'at 8 nodes.*method="marginal"'):
        mrgp.sample_posterior(two_free(), data, "gibbs")
    monkeypatch.setitem(sys.modules, "blackjax.mcmc", None)
    monkeypatch.setattr("mrgp.inference.mcmc.target.MOST_PLACES", 50)
    with pytest.raises(ImportError, match=r"mrgp\[mcmc\]"):
        mrgp.sample_posterior(two_free(), data, "nuts")


def test_a_density_that_is_nowhere_finite_is_an_error(monkeypatch):
    nowhere = lambda target, candidates: jax.numpy.full(candidates.shape[:2], -jax.numpy.inf)  # noqa: E731
    monkeypatch.setattr(drawing, "_densities", nowhere)
    with pytest.raises(mrgp.FitError, match="not finite about the starting values"):
        mrgp.sample_posterior(two_free(), data_of())


def test_chains_that_disagree_are_warned_of_and_told_once():
    with pytest.warns(
        UserWarning, match="sample_posterior: R-hat of .* raise warmup= and samples="
    ):
        chains = mrgp.sample_posterior(
            two_free(), data_of(), samples=8, warmup=4, key=3, progress=None
        )
    remarks = [line for line in chains.summary().splitlines() if "do not use" in line]
    assert len(remarks) == 1


@pytest.mark.thorough
def test_weights_may_be_found_first():
    data = data_of(24)
    with pytest.warns(UserWarning, match="R-hat"):
        chains = mrgp.sample_posterior(
            two_free(), data, weights="auto", samples=8, warmup=4, chains=2, key=3, progress=None
        )
    found = mrgp.composite_weights(two_free(), data, key=3, progress=None)
    assert chains.weights["fine", "value"] == pytest.approx(found["fine"])
    with pytest.raises(ValueError, match=r'weights= takes a mapping, or "auto"; got .yes.'):
        mrgp.sample_posterior(two_free(), data, weights="yes", progress=None)


@pytest.mark.usefixtures("as_users_see_it")
def test_what_a_sampler_cannot_do_is_told():
    with pytest.raises(ValueError, match="needs a warmup= to find its step size"):
        mrgp.sample_posterior(two_free(), data_of(), method="nuts", warmup=0, progress=None)
    cells = mrgp.Observations(mrgp.intervals([0.0, 1.0], [1.0, 2.0]), [0.1, 0.2], name="cells")
    model = mrgp.MRGP(mrgp.RBF() + mrgp.White())
    with pytest.raises(ValueError, match="White has no value at the nodes of regions"):
        mrgp.sample_posterior(model, mrgp.Dataset([cells]), method="gibbs", progress=None)


def test_draws_that_never_move_are_not_called_converged():
    theta = np.random.default_rng(0).standard_normal((2, 50, 2))
    theta[1, :, 0] = 0.3
    status = drawing._judged({"a": theta[..., 0]}, drawing.Draw(theta, None, {}))
    assert status.code == "step limit"
    assert "has not moved" in status.message


def test_a_field_that_has_not_mixed_is_seen():
    rng = np.random.default_rng(0)
    theta, z = rng.standard_normal((2, 200, 1)), rng.standard_normal((2, 200, 5))
    z[1] += 3.0
    status = drawing._judged({"a": theta[..., 0]}, drawing.Draw(theta, z, {}))
    assert "R-hat of the field" in status.message
