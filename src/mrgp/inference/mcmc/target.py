"""What is sampled: densities of raw parameters and of the whitened field (theory 7.1)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._linalg import (
    JITTER,
    add_diagonal,
    cholesky,
    inverse_lower,
    log_determinant,
    solve_lower,
    solve_upper,
)
from mrgp._types import AnyArray
from mrgp.gp import Conditioned, Posterior, Readings
from mrgp.inference.objectives import Objective
from mrgp.kernels import has_white
from mrgp.models import Linear, as_arrays
from mrgp.parameters import limits, log_prior, unwrap
from mrgp.supports import Nodes, Points, shared_places

MOST_PLACES = 2500

Theta = Float[Array, " p"]
White = Float[Array, " m"]
Root = Float[Array, " n"] | Float[Array, "n n"]
"""Standard deviations of independent errors, or the Cholesky factor of their covariance."""


def whiten(root: Root, values: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Write values in units of their errors."""
    if root.ndim == 2:
        return solve_lower(root, values)
    return values / (root if values.ndim == 1 else root[:, None])


def log_errors(root: Root, residual: Float[Array, " n"]) -> Float[Array, ""]:
    """Return the log density of errors."""
    white = whiten(root, residual)
    constant = 0.5 * residual.shape[0] * jnp.log(2.0 * jnp.pi)
    half = 0.5 * log_determinant(root) if root.ndim == 2 else jnp.sum(jnp.log(root))
    return -0.5 * jnp.vdot(white, white) - half - constant


class Seen(NamedTuple):
    """What values say of the whitened field z: residual = signal z + error."""

    residual: Float[Array, " n"]
    signal: Float[Array, "n m"]


class Conditional(NamedTuple):
    """The Gaussian of z given values, with the signal in units of the errors.

    `factor` is the Cholesky factor of the precision I + basis^T basis.
    """

    basis: Float[Array, "n m"]
    factor: Float[Array, "m m"]

    @classmethod
    def of(cls, seen: Seen, root: Root) -> "Conditional":
        """Condition on what is seen with such errors."""
        basis = whiten(root, seen.signal)
        return cls(basis, cholesky(add_diagonal(basis.T @ basis, 1.0)))

    def place(self, values: Float[Array, " n"], noise: White) -> White:
        """Return the z that independent unit normals stand for, given values in error units."""
        return solve_upper(self.factor, self._projected(values) + noise)

    def noise(self, values: Float[Array, " n"], z: White) -> White:
        """Return the independent unit normals that z stands for: the inverse of `place`."""
        return self.factor.T @ z - self._projected(values)

    def _projected(self, values: Float[Array, " n"]) -> White:
        return solve_lower(self.factor, self.basis.T @ values)


class Target(eqx.Module):
    """The posterior of a model: theta are its trained raw parameters, all in one vector.

    The field lives at the distinct nodes x of all supports, where `rows` is A in y = A f + error;
    f = L z with z white. Densities are zero beyond the limits that fits keep to.
    """

    objective: Objective
    start: Theta
    x: Float[Array, "m d"]
    rows: Float[Array, "n m"]
    low: Theta
    high: Theta
    noises: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, objective: Objective, latent: bool) -> "Target":
        """Lay out an objective; `latent` says whether the field itself is to be sampled."""
        model: Linear = objective.model(objective.start)
        records = objective.records
        low, high = limits(model)
        start = _flat(objective.start)
        supports = [record.support for record in records] if latent else []
        _check_white(model, supports)
        places = shared_places(supports, model.solver.rule) if latent else None
        if places is not None and len(places.x) > MOST_PLACES:
            raise ValueError(
                f"sample_posterior: the field would live at {len(places.x)} nodes, and at most"
                f' {MOST_PLACES} are allowed. Use method="marginal", or fewer nodes a region.'
            )
        return cls(
            objective,
            jnp.asarray(start),
            jnp.asarray(np.zeros((0, 1)) if places is None else places.x),
            jnp.asarray(np.zeros((0, 0)) if places is None else np.concatenate(places.rows)),
            *as_arrays((np.minimum(low, start), np.maximum(high, start))),
            noises=_noise_indices(objective),
        )

    @property
    def size(self) -> int:
        """Number of trained parameters."""
        return self.start.shape[0]

    def model(self, theta: Theta) -> Linear:
        """Return the model with these parameters."""
        leaves, structure = jax.tree.flatten(self.objective.start)
        ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
        parts = jnp.split(theta, ends) if leaves else []
        shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
        return self.objective.model(jax.tree.unflatten(structure, shaped))

    def log_prior(self, theta: Theta) -> Float[Array, ""]:
        """Return the log prior of raw parameters."""
        inside = jnp.all((theta >= self.low) & (theta <= self.high))
        return jnp.where(inside, log_prior(self.model(theta)), -jnp.inf)

    def log_marginal(self, theta: Theta) -> Float[Array, ""]:
        """Return log prior and log evidence, the field integrated out."""
        evidence = self.model(theta).log_evidence(self.objective.records)
        return _finite(self.log_prior(theta) + evidence)

    def log_joint(self, theta: Theta, noise: White) -> tuple[Float[Array, ""], White]:
        """Return the log density of parameters and field, and the whitened field.

        The field is written as independent unit normals about what the data say of it given theta:
        coordinates in which slopes of parameters and field hardly depend on one another.
        """
        seen, root = self.seen(theta), self.root(theta)
        given = Conditional.of(seen, root)
        z = given.place(whiten(root, seen.residual), noise)
        likelihood = self.log_likelihood(theta, seen.residual - seen.signal @ z)
        jacobian = -0.5 * log_determinant(given.factor)
        density = self.log_prior(theta) + likelihood - 0.5 * jnp.vdot(z, z) + jacobian
        return _finite(density), z

    def log_likelihood(self, theta: Theta, error: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log density of the errors, with composite weights and their constants."""
        return log_errors(self.root(theta), error) + self.readings(theta).tempering

    def readings(self, theta: Theta) -> Readings:
        """Return what the sources read of the field."""
        return self.model(theta).readings(self.objective.records)

    def root(self, theta: Theta) -> Root:
        """Return the root of the covariance of the errors."""
        readings = self.readings(theta)
        if readings.shared is None:
            return jnp.sqrt(readings.noise)
        return cholesky(add_diagonal(readings.shared, readings.noise))

    def seen(self, theta: Theta) -> Seen:
        """Return what values say of the whitened field."""
        readings = self.readings(theta)
        ratio = [jnp.broadcast_to(s.ratio, s.y.shape) for s in readings.sources]
        signal = jnp.concatenate(ratio)[:, None] * (self.rows @ self.factor(theta))
        return Seen(readings.residual, signal)

    def factor(self, theta: Theta) -> Float[Array, "m m"]:
        """Return L of the prior covariance L L^T of the field at the nodes."""
        prior = unwrap(self.model(theta).solver.kernels[0]).cross(self.x, self.x)
        jitter = JITTER * jnp.trace(prior) / prior.shape[0]
        return cholesky(add_diagonal(prior, jitter))

    def state(self, theta: Theta, z: White | None) -> Conditioned:
        """Return the field given the data, or given its whitened values at the nodes."""
        if z is None:
            return self.model(theta).condition(self.objective.records)
        root = inverse_lower(self.factor(theta))
        anchor = Points(self.x, jnp.ones(self.x.shape[0]))
        return Posterior((anchor,), (jnp.ones(1),), root.T @ z, root, jnp.zeros(()))


def _flat(tree: Any) -> Float[np.ndarray, " p"]:
    return np.concatenate([np.zeros(0), *(np.ravel(leaf) for leaf in jax.tree.leaves(tree))])


def _noise_indices(objective: Objective) -> tuple[int, ...]:
    """Return where the noise variances are in the vector of trained parameters."""
    marked = jax.tree.map(np.zeros_like, objective.start)
    noises = jax.tree.map(np.ones_like, objective.start.noise)
    marked = eqx.tree_at(lambda tree: tree.noise, marked, noises)
    return tuple(int(i) for i in np.flatnonzero(_flat(marked)))


def _finite(value: Float[AnyArray, ""]) -> Float[Array, ""]:
    return jnp.where(jnp.isfinite(value), value, -jnp.inf)


def _check_white(model: Linear, supports: list[Any]) -> None:
    """Refuse White inside regions: its average there is zero, but not that of its nodes."""
    if has_white(model.solver.kernels[0]) and not all(
        isinstance(s, Points | Nodes) for s in supports
    ):
        raise ValueError(
            "sample_posterior: a kernel with White has no value at the nodes of regions. Use"
            ' method="marginal", or leave White out: every source has a noise of its own.'
        )
