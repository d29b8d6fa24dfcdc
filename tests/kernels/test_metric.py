"""Turned ellipses: `metric="full"`."""

import jax
import numpy as np
import pytest

import mrgp
from mrgp.gp import cross_covariance
from mrgp.kernels import Binding
from mrgp.parameters import unwrap
from mrgp.supports import Geometry
from reference import kernels as reference

RNG = np.random.default_rng(1)
X, Z = RNG.normal(size=(6, 2)), RNG.normal(size=(4, 2))
LENGTHS, ANGLE = np.array([3.0, 0.7]), np.radians(30.0)
PROFILES = {
    mrgp.RBF: lambda r: np.exp(-0.5 * r**2),
    mrgp.Matern12: lambda r: np.exp(-r),
    mrgp.Matern32: lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    mrgp.Matern52: lambda r: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
}


def numbers(lengths=LENGTHS, angle=ANGLE):
    """Return lengthscale and stretch of an ellipse."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    scale = np.sqrt(lengths.prod())
    precision = turn.T @ np.diag(scale**2 / lengths**2) @ turn
    flipped = np.linalg.cholesky(precision[::-1, ::-1])[::-1, ::-1].T
    return scale, np.array([np.log(flipped[0, 0]), flipped[1, 0]])


def elliptic(kind, **more):
    scale, stretch = numbers()
    return kind(scale, variance=1.0, metric="full", stretch=stretch, **more)


def bound(kernel, spaces=((0, 1),)):
    geometry = Geometry(("x", "y"), np.ones(2), np.ones(2), np.zeros(2), spaces)
    return kernel.bind(Binding(geometry, priors=True))


@pytest.mark.parametrize("kind", PROFILES)
def test_values_are_those_of_the_ellipse(kind):
    with jax.enable_x64(True):
        found = unwrap(bound(elliptic(kind))).cross(X, Z)
    expected = reference.elliptic(X, Z, LENGTHS, ANGLE, PROFILES[kind])
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_ellipse_is_told_back():
    with jax.enable_x64(True):
        lengths, axes = unwrap(bound(elliptic(mrgp.RBF))).ellipse
    np.testing.assert_allclose(lengths, LENGTHS, rtol=1e-10)
    assert np.degrees(np.arctan2(axes[1, 0], axes[0, 0])) % 180 == pytest.approx(30.0)


def test_an_open_stretch_starts_at_a_circle():
    with jax.enable_x64(True):
        full, plain = (unwrap(bound(k)) for k in (mrgp.RBF(metric="full"), mrgp.RBF()))
        np.testing.assert_allclose(full.cross(X, Z), plain.cross(X, Z), rtol=1e-12)


@pytest.mark.parametrize("kind", [mrgp.RBF, mrgp.Matern32])
def test_boxes_are_averaged_by_quadrature(kind):
    lower, upper = np.array([[0.0, 0.0], [2.0, -1.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    cells = mrgp.boxes(lower, upper)
    t = (np.arange(40) + 0.5) / 40
    grid = np.stack(np.meshgrid(t, t), -1).reshape(-1, 2)
    with jax.enable_x64(True):
        kernel = unwrap(bound(elliptic(kind)))
        found = cross_covariance(kernel, cells, mrgp.points(X))
    for i in range(2):
        nodes = lower[i] + grid * (upper[i] - lower[i])
        values = reference.elliptic(nodes, X, LENGTHS, ANGLE, PROFILES[kind])
        np.testing.assert_allclose(found[i], values.mean(0), atol=5e-3)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mrgp.RBF(metric="round"), r"RBF: metric= is one of \('diagonal', 'full'\); got"),
        (lambda: mrgp.Matern32(metric="full", product=True), "a product over inputs cannot be"),
        (lambda: bound(mrgp.RBF(metric="full"), ()), 'metric="full" turns the inputs of one space'),
        (lambda: bound(mrgp.RBF(metric="full", dims="x")), r"it sees \('x',\)"),
        (lambda: bound(mrgp.RBF([1.0, 2.0], metric="full")), "with one lengthscale"),
        (lambda: bound(mrgp.RBF(metric="full", stretch=[0.0])), "stretch must be"),
    ],
)
def test_what_cannot_be_turned_says_so(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_fit_finds_a_diagonal_ellipse(tmp_path):
    """A field that is long along the diagonal: three times as long as across."""
    x = RNG.uniform(0.0, 10.0, (70, 2))
    along, across = (x[:, 0] + x[:, 1]) / np.sqrt(2), (x[:, 0] - x[:, 1]) / np.sqrt(2)
    y = np.sin(across) + 0.5 * np.sin(along / 4) + 0.02 * RNG.standard_normal(70)
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x, inputs=("x", "y")), y)])
    plain = mrgp.fit(mrgp.MRGP(mrgp.RBF()), data, progress=None)
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF(metric="full")), data, progress=None)
    assert fit.history[-1] > plain.history[-1] + 5
    lengths, axes = unwrap(fit.model.kernel).ellipse
    assert lengths[0] > 2 * lengths[1]
    assert np.degrees(np.arctan2(axes[1, 0], axes[0, 0])) % 180 == pytest.approx(45, abs=10)
    assert "degrees from x towards y" in fit.summary()
    mrgp.save(fit, tmp_path / "fit")
    assert mrgp.load(tmp_path / "fit").summary() == fit.summary()
