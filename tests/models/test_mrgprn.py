"""The recipe of networks: what it refuses, and the corners of its fits."""

import warnings

import jax
import numpy as np
import pytest

import mrgp
from mrgp.inference import stages

QUICK = mrgp.LBFGS(max_steps=4, starts=1, candidates=0)
SMALL = {"latents": 1, "inducing_f": 8, "inducing_w": 4}


def dataset(n=20):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 5, n))
    lower = np.arange(0.0, 5.0)
    return mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x[:, None]), 9 + np.sin(x), task="a", name="sites"),
            mrgp.Observations(
                mrgp.intervals(lower, lower + 1), 3 * np.sin(lower + 0.5), task="b", name="cells"
            ),
        ]
    )


DATA = dataset()
GRID = mrgp.points(np.linspace(0, 5, 6)[:, None])


def fit(data=DATA, optimiser=QUICK, **arguments):
    return mrgp.fit(mrgp.MRGPRN(**SMALL | arguments), data, optimiser=optimiser, progress=None)


REFUSED = {
    "latents": ({"latents": 0}, "latents= must be a whole number, at least 1"),
    "components": ({"components": 1.5}, "components= must be a whole number"),
    "mean": ({"mean": "linear"}, "mean= is one of"),
    "entropy": ({"entropy": "exact"}, "entropy= is one of"),
    "schedule": ({"schedule": "paper"}, "schedule= is one of"),
    "kernel": ({"kernel_f": "RBF"}, "kernel_f= takes a kernel such as mrgp.RBF"),
    "word": ({"kernel_w": "fixed"}, 'a kernel, a list of kernels, or "constant"; got .fixed'),
    "white": ({"kernel_f": mrgp.RBF() + mrgp.White()}, "may not contain White"),
    "list": ({"latents": 3, "kernel_f": [mrgp.RBF()] * 2}, "2 kernels for latents=3"),
    "constant": ({"kernel_w": "constant", "components": 2}, "in which components= has no meaning"),
    "entropy of constant": (
        {"kernel_w": "constant", "entropy": "paper"},
        "entropy= has no meaning",
    ),
    "positive": ({"positive": "no"}, "positive= is True or False; got 'no'"),
    "quadrature": ({"quadrature": 5}, "quadrature= takes a rule"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_recipes_say_what_is_wrong(case, as_users_see_it):
    arguments, text = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=text):
        mrgp.MRGPRN(**arguments)


def test_adam_refuses_the_schedule_in_stages():
    with pytest.raises(ValueError, match=r"noise-last.*goes with L-BFGS"):
        fit(schedule="noise-last", optimiser=mrgp.Adam(steps=5))


def test_samples_must_be_a_whole_number(linear):
    with pytest.raises(ValueError, match="samples must be a whole number"):
        mrgp.predict(linear, GRID, task="a", samples=True)


@pytest.fixture(scope="module")
def linear():
    return fit(kernel_w="constant", inducing_w=None)


def test_a_linear_fit_speaks_of_its_weights(linear):
    text = linear.summary()
    assert "linear coregionalised model" in text
    assert {"W[a]", "W[b]", "mean[a]", "noise_variance[cells, b]"} <= set(linear.parameters())


def test_adam_fits_the_linear_model():
    found = fit(kernel_w="constant", inducing_w=None, optimiser=mrgp.Adam(steps=20))
    assert np.isfinite(mrgp.predict(found, GRID, task="b").mean).all()


@pytest.mark.thorough
def test_adam_fits_mixtures():
    found = fit(components=2, optimiser=mrgp.Adam(steps=20, warm_start=False))
    assert found.model.q.logits.raw.shape == (2,)
    assert mrgp.predict(found, GRID, task="a", samples=6).means.shape == (12, 6)
    assert "a mixture of 2 Gaussians" in found.summary()


@pytest.mark.thorough
def test_with_nothing_to_train_the_posterior_is_still_found():
    held = {
        "kernel_f": mrgp.RBF(mrgp.fixed(1.0)),
        "kernel_w": mrgp.RBF(mrgp.fixed(5.0), variance=mrgp.fixed(1.0)),
        "mean": "zero",
    }
    known = mrgp.Dataset([o.replace(noise_variance=np.full(len(o.y), 0.01)) for o in DATA])
    for optimiser in (QUICK, mrgp.Adam(steps=60)):
        pred = mrgp.predict(fit(known, optimiser, **held), GRID, task="a", samples=0)
        assert np.abs(pred.mean - 9 - np.sin(GRID.x[:, 0]))[:5].max() < 0.2


@pytest.mark.thorough
def test_a_zero_mean_stays_zero_where_the_linear_start_sees_a_sample(monkeypatch):
    monkeypatch.setattr(stages, "FORERUNNER_ROWS", 10)
    found = fit(mean="zero")
    assert found.parameters()["mean[a]"] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(found.model.levels.spread, found.scaling.scale)


class Impatient(mrgp.inference.Silent):
    def update(self, step, text):
        raise KeyboardInterrupt


@pytest.mark.thorough
def test_an_interrupted_linear_start_ends_the_fit():
    found = mrgp.fit(mrgp.MRGPRN(**SMALL), DATA, optimiser=QUICK, progress=Impatient())
    assert found.status.code == "interrupted"
    assert np.isfinite(mrgp.predict(found, GRID, task="a").mean).all()


def test_the_objective_starts_with_a_slope():
    f = mrgp.objective(mrgp.MRGPRN(components=2, **SMALL), DATA)
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(f))(f.start)
    means = [b.mean.raw for b in slope.q.blocks.f]
    assert all(np.abs(np.asarray(m)).max() > 1e-3 for m in means)


@pytest.mark.thorough
def test_lengthscales_given_are_where_a_fit_starts():
    given = mrgp.MRGPRN(latents=2, kernel_f=mrgp.RBF(3.0)).build(DATA)
    assert [float(k.lengthscale.value) for k in given.kernels_f] == pytest.approx([3.0, 3.0])
    opened = mrgp.MRGPRN(latents=2, kernel_f=mrgp.RBF()).build(DATA)
    a, b = (float(k.lengthscale.value[0]) for k in opened.kernels_f)
    assert a / b == pytest.approx(3.0)


def test_shares_inside_a_product_are_trained():
    kernel = mrgp.RBF() * (mrgp.Periodic(2.0) + mrgp.Matern32())
    built = mrgp.MRGPRN(latents=1, kernel_f=kernel).build(DATA)
    assert sum(p.trainable for n, p in built.named().items() if n.endswith("variance")) > 3


@pytest.mark.thorough
def test_wide_regions_are_warned_of():
    held = {"kernel_f": mrgp.RBF(mrgp.fixed(0.1))}
    with pytest.warns(UserWarning, match=r"source 'cells'.*10 lengthscales wide along x1"):
        found = fit(**held)
    with pytest.warns(UserWarning, match="predict: regions up to 30 lengthscales"):
        mrgp.predict(found, mrgp.intervals([0.0], [3.0]), task="a", samples=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mrgp.predict(found, GRID, task="a", samples=0)


@pytest.mark.thorough
def test_regions_as_centres():
    found = mrgp.fit(mrgp.CenterPoint(mrgp.MRGPRN(**SMALL)), DATA, optimiser=QUICK, progress=None)
    assert np.isfinite(mrgp.predict(found, GRID, task="b", source="cells").std).all()
    assert "CenterPoint(MRGPRN)" in found.summary()
