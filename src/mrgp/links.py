"""Links: what a Gaussian function says of a field g(f), averaged over the nodes of regions.

A region has the mean and the variance of L g(f), and a likelihood sees them on its own scale: as a
Gaussian, as the logarithm of one, or as Phi of one (theory 11).
"""

from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float
from scipy.special import ndtri as host_ndtri

Link = Literal["identity", "log", "square", "probit"]
LINKS = get_args(Link)
Scale = Literal["real", "log", "probit"]
"""On which scale a likelihood sees mu as Gaussian."""

ANGLES = 16
SOLVING = 12
LEAST = 1e-12

Rows = Float[Array, " n"]


def node_moments(
    link: Link, mean: Float[Array, "n s"], covariance: Float[Array, "n s s"]
) -> tuple[Float[Array, "n s"], Float[Array, "n s s"]]:
    """Return mean and covariance of g(f) among the nodes of each region (theory 11.2).

    >>> mean, spread = node_moments("log", jnp.zeros((1, 1)), jnp.ones((1, 1, 1)))
    >>> round(float(mean[0, 0]), 3), round(float(spread[0, 0, 0]), 3)  # e^(1/2), e (e - 1)
    (1.649, 4.671)
    """
    variance = jnp.diagonal(covariance, axis1=-2, axis2=-1)
    if link == "log":
        found = jnp.exp(mean + 0.5 * variance)
        return found, found[..., :, None] * found[..., None, :] * jnp.expm1(covariance)
    if link == "square":
        pairs = mean[..., :, None] * mean[..., None, :]
        return mean**2 + variance, 2.0 * covariance**2 + 4.0 * pairs * covariance
    if link == "probit":
        scale = jnp.sqrt(1.0 + variance)
        h, rho = mean / scale, covariance / (scale[..., :, None] * scale[..., None, :])
        excess = bivariate_excess(h[..., :, None], h[..., None, :], jnp.arcsin(rho))
        return ndtr(h), excess
    return mean, covariance


def region_moments(
    link: Link,
    weights: Float[Array, "n s"],
    mean: Float[Array, "n s"],
    covariance: Float[Array, "n s s"],
) -> tuple[Rows, Rows]:
    """Return mean and variance of L g(f) for each region.

    >>> half = jnp.full((1, 2), 0.5)
    >>> mean, spread = region_moments("square", half, jnp.ones((1, 2)), jnp.zeros((1, 2, 2)))
    >>> float(mean[0]), float(spread[0])
    (1.0, 0.0)
    """
    mean, covariance = node_moments(link, mean, covariance)
    spread = jnp.einsum("ns,nst,nt->n", weights, covariance, weights)
    return jnp.sum(weights * mean, 1), jnp.maximum(spread, 0.0)


def on_scale(scale: Scale, mean: Rows, variance: Rows) -> tuple[Rows, Rows]:
    """Return the Gaussian by which a likelihood sees a mean and a variance of mu (theory 11.3).

    >>> location, spread = on_scale("log", jnp.ones(1), jnp.ones(1))
    >>> [round(float(part[0]), 3) for part in (location, spread)]  # -log(2) / 2, log 2
    [-0.347, 0.693]
    """
    if scale == "log":
        mean = jnp.maximum(mean, jnp.finfo(float).tiny)
        spread = jnp.log1p(variance / mean / mean)
        return jnp.log(mean) - 0.5 * spread, spread
    if scale == "probit":
        return _on_probit(mean, variance)
    return mean, variance


def jensen_on_log(
    weights: Float[Array, "n s"], mean: Float[Array, "n s"], expected: Rows
) -> tuple[Rows, Rows]:
    """Return the Gaussian of log mu whose mean is Jensen's bound, with E mu as it is (theory 11.3).

    >>> half = jnp.full((1, 2), 0.5)
    >>> location, spread = jensen_on_log(half, jnp.zeros((1, 2)), jnp.ones(1))
    >>> float(location[0]), float(spread[0])
    (0.0, 0.0)
    """
    used = weights > 0
    logs = jnp.where(used, mean + jnp.log(jnp.where(used, weights, 1.0)), -jnp.inf)
    location = jax.scipy.special.logsumexp(logs, axis=1)
    return location, 2.0 * (jnp.log(expected) - location)


def inverse(link: Link, level: float) -> float:
    """Return the f at which a link has a level.

    >>> inverse("log", 1.0), inverse("square", 4.0), inverse("probit", 0.5)
    (0.0, 2.0, 0.0)
    """
    if link == "log":
        return float(np.log(level))
    if link == "square":
        return float(np.sqrt(level))
    return float(host_ndtri(level)) if link == "probit" else level


def slope(link: Link, level: float) -> float:
    """Return g' where the link has a level: how far the field moves with f.

    >>> slope("log", 3.0), slope("square", 4.0)
    (3.0, 4.0)
    """
    f = inverse(link, level)
    density = np.exp(-0.5 * f**2) / np.sqrt(2 * np.pi)
    return {"identity": 1.0, "log": level, "square": 2 * f, "probit": float(density)}[link]


def bivariate_excess(h: Any, k: Any, angle: Any) -> Any:
    """Return P(z < h, z' < k) - Phi(h) Phi(k) for standard Gaussians of correlation sin(angle).

    It is the integral of exp(-(h^2 + k^2 - 2 h k sin t) / (2 cos^2 t)) / 2 pi from 0 to the angle.

    >>> round(float(bivariate_excess(np.zeros(()), np.zeros(()), np.pi / 6)), 4)  # 1 / 12
    0.0833
    """
    nodes, shares = np.polynomial.legendre.leggauss(ANGLES)
    on_host = isinstance(h, np.ndarray | np.generic | float)
    space = np if on_host else jnp

    def at(node: Any) -> Any:
        t = 0.5 * (1.0 + node) * angle
        cosine = space.maximum(space.cos(t) ** 2, 1e-30)
        # h^2 + k^2 - 2 h k sin t = (h - k)^2 + 2 h k (1 - sin t); cos^2 = (1 - sin)(1 + sin).
        return space.exp(-0.5 * (h - k) ** 2 / cosine - h * k / (1.0 + space.sin(t)))

    if on_host:
        total = sum(share * at(node) for node, share in zip(nodes, shares, strict=True))
    else:
        total = jnp.tensordot(jnp.asarray(shares), jax.vmap(at)(jnp.asarray(nodes)), 1)
    return 0.25 / np.pi * angle * total


def _on_probit(mean: Rows, variance: Rows) -> tuple[Rows, Rows]:
    """Return mean and variance of z with E Phi(z) and var Phi(z) as given."""
    mean = jnp.clip(mean, LEAST, 1 - LEAST)
    h = ndtri(mean)
    fixed, target = jax.lax.stop_gradient(h), jax.lax.stop_gradient(variance)
    low, high = jnp.zeros_like(h), jnp.full_like(h, 0.5 * jnp.pi)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        below = bivariate_excess(fixed, fixed, middle) < target
        return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

    low, high = jax.lax.fori_loop(0, SOLVING * 4, halve, (low, high))
    angle = jax.lax.stop_gradient(jnp.clip(0.5 * (low + high), 1e-9, 0.5 * jnp.pi - 1e-4))
    # One step of Newton's method, exact already, has the derivative of the solution.
    density = jnp.exp(-(fixed**2) / (1.0 + jnp.sin(angle))) / (2 * jnp.pi)
    angle = angle + (variance - bivariate_excess(h, h, angle)) / density
    rho = jnp.sin(angle)
    spread = rho / (1.0 - rho)
    return h * jnp.sqrt(1.0 + spread), spread
