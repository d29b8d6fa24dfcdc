"""Kernels in fits: starting values, priors and limits from the data, names, save and load."""

import jax
import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.kernels import Binding, kernel_parameters
from mrgp.parameters import limits
from mrgp.supports import Geometry

QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
X = np.linspace(0, 5, 12)[:, None]
GRID = np.stack(np.meshgrid(np.linspace(0, 10, 21), np.linspace(5, 7, 5)), -1).reshape(-1, 2)
GEOMETRY = Geometry.of((mrgp.points(GRID, inputs=("time", "height")),))
KERNELS = {
    "RationalQuadratic": mrgp.RationalQuadratic(),
    "Polynomial": mrgp.Polynomial(3),
    "ArcCosine": mrgp.ArcCosine(1),
    "SpectralMixture": mrgp.SpectralMixture(2),
}


def names(kernel, inputs=("time", "height")):
    with jax.enable_x64(True):
        return list(kernel_parameters(kernel.bind(Binding(GEOMETRY)), inputs))


def bound(kernel, **settings):
    return kernel.bind(Binding(GEOMETRY, **{"variance": 4.0, "priors": True} | settings))


@pytest.mark.parametrize("name", rest_thorough(KERNELS, "Polynomial"))
def test_a_loaded_fit_predicts_identically(name, tmp_path):
    cells = mrgp.boxes(X, X + 0.5, inputs="hour")
    data = mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(X, inputs="hour"), np.sin(X[:, 0]), name="a"),
            mrgp.Observations(cells, np.sin(X[:, 0]), name="b", noise_variance=0.1),
        ]
    )
    fit = mrgp.fit(mrgp.MRGP(KERNELS[name]), data, optimiser=QUICK)
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit")
    support = mrgp.intervals([0.3, 2.0], [0.9, 2.0], inputs="hour")
    a, b = (mrgp.predict(f, support) for f in (fit, again))
    np.testing.assert_array_equal(a.mean, b.mean)
    np.testing.assert_array_equal(a.variance, b.variance)
    assert again.summary() == fit.summary()


def test_parameters_go_by_the_names_of_the_theory():
    assert names(KERNELS["RationalQuadratic"]) == [
        "kernel.variance",
        "kernel.lengthscale",
        "kernel.alpha",
    ]
    assert names(KERNELS["Polynomial"].on("time") + mrgp.RBF())[:3] == [
        "kernel.Polynomial(time).variance",
        "kernel.Polynomial(time).weight_variance",
        "kernel.Polynomial(time).offset",
    ]
    assert names(2.0 * mrgp.ArcCosine())[-1] == "kernel.ArcCosine.bias_variance"
    assert names(mrgp.separable(time=mrgp.SpectralMixture(), space=mrgp.RBF()))[:4] == [
        "kernel.SpectralMixture(time).variance",
        "kernel.SpectralMixture(time).weight",
        "kernel.SpectralMixture(time).frequency",
        "kernel.SpectralMixture(time).bandwidth",
    ]


def test_alpha_starts_at_one_between_its_limits():
    kernel = bound(mrgp.RationalQuadratic())
    assert float(kernel.alpha.value) == pytest.approx(1.0)
    assert float(kernel.alpha.prior.median) == 1.0
    low, high = (np.exp(b) for b in kernel.alpha.transform.bounds())
    np.testing.assert_allclose([0.01 + low, 0.01 + high], [0.01, 100.0], atol=1e-4)
    assert bound(mrgp.RationalQuadratic(), priors=False).alpha.prior is None
    np.testing.assert_allclose(bound(mrgp.RationalQuadratic(1.0, 1e-4)).alpha.value, 1e-4)


@pytest.mark.parametrize("kernel", [mrgp.Polynomial(2), mrgp.ArcCosine(2)])
def test_weights_start_at_the_domain_and_the_constant_is_held(kernel):
    made = bound(kernel)
    np.testing.assert_allclose(made.weight_variance.value, [1 / 100, 1 / 4], rtol=1e-12)
    np.testing.assert_allclose(made.weight_variance.prior.median, [1 / 100, 1 / 4])
    np.testing.assert_allclose(made.variance.value, 4.0)
    np.testing.assert_array_equal(made.origin, [0.0, 0.0])
    held = made.offset if isinstance(kernel, mrgp.Polynomial) else made.bias_variance
    assert not held.trainable
    assert float(held.value) == 1.0
    assert len(limits(made)[0]) == 3
    freed = mrgp.Polynomial(2, mrgp.positive(0.5), origin=[1.0, 2.0])
    assert bound(freed).offset.trainable
    np.testing.assert_array_equal(bound(freed).origin, [1.0 - 5.0, 2.0 - 6.0])


@pytest.mark.parametrize("components", [1, 3, 8])
def test_frequencies_start_spread_over_what_the_data_can_show(components):
    made = bound(mrgp.SpectralMixture(components))
    frequency, bandwidth = (np.asarray(p.value) for p in (made.frequency, made.bandwidth))
    low, high = 1 / GEOMETRY.extent, 1 / (2 * GEOMETRY.spacing)
    np.testing.assert_allclose((low, high), ([0.1, 0.5], [1.0, 1.0]), rtol=1e-9)
    assert frequency.shape == bandwidth.shape == (components, 2)
    assert ((low < frequency) & (frequency < high)).all()
    steps = np.log(frequency[:, 0] / 0.1) / np.log(10)
    np.testing.assert_allclose(steps, (np.arange(components) + 0.5) / components, rtol=1e-12)
    assert len(np.unique(frequency[:, 1])) == components
    # Neighbouring bands reach one another, and none goes below zero.
    assert (bandwidth < frequency).all()
    below, above = frequency[:-1, 0] + bandwidth[:-1, 0], frequency[1:, 0] - bandwidth[1:, 0]
    assert (below >= above - 1e-12).all()
    np.testing.assert_allclose(made.frequency.prior.median[0], np.sqrt(low * high))
    again = bound(mrgp.SpectralMixture(components))
    np.testing.assert_array_equal(again.frequency.value, frequency)


def test_weights_of_bands_are_shares_and_one_alone_is_held():
    np.testing.assert_allclose(bound(mrgp.SpectralMixture(4)).weight.value, np.full(4, 0.25))
    assert not bound(mrgp.SpectralMixture(1)).weight.trainable
    # In a product the variance may be held, and the shares still learn.
    product = bound(mrgp.RBF() * mrgp.SpectralMixture(2))
    assert not product.kernels[1].variance.trainable
    assert product.kernels[1].weight.trainable


def test_frequencies_and_bandwidths_keep_to_their_limits():
    made = bound(mrgp.SpectralMixture(2))
    top = made.frequency.transform.bounds()[1]
    ceiling = np.sqrt([0.1, 0.5]) * np.exp(top)
    np.testing.assert_allclose(ceiling, np.full((2, 2), 3.0), rtol=1e-9)
    floor = 1 / (2 * np.pi * 3 * GEOMETRY.extent)
    np.testing.assert_allclose(made.bandwidth.transform.floor, np.stack([floor, floor]))
    narrow = bound(mrgp.SpectralMixture(1, bandwidth=[1e-5]))
    np.testing.assert_allclose(narrow.bandwidth.value, [1e-5])


def test_a_spectral_mixture_finds_two_periods_without_luck():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 60))[:, None]

    def truth(t):
        return np.sin(2 * np.pi * t / 0.9) + 0.6 * np.cos(2 * np.pi * t / 3.1)

    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), truth(x[:, 0]), noise_variance=0.01)])
    fit = mrgp.fit(
        mrgp.MRGP(mrgp.SpectralMixture(2)), data, optimiser=mrgp.LBFGS(starts=1, candidates=0)
    )
    found = np.sort(fit.parameters()["kernel.frequency"][:, 0])
    np.testing.assert_allclose(found, [1 / 3.1, 1 / 0.9], rtol=0.03)
    ahead = np.linspace(10, 12, 21)
    error = mrgp.predict(fit, mrgp.points(ahead[:, None])).mean - truth(ahead)
    assert np.sqrt(np.mean(error**2)) < 0.2
