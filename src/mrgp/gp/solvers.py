"""How latent functions are found from readings: exactly, or through inducing inputs.

A solver holds the kernels, and what its way of solving needs; it gives the log evidence of
readings (or a bound on it), their posterior, how that smooths them, and predictions.
"""

import functools
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._linalg import (
    add_diagonal,
    cholesky,
    gaussian_log_density,
    inverse_lower,
    log_determinant,
    solve_lower,
    solve_upper,
    whitener,
)
from mrgp._types import AnyArray
from mrgp.gp.covariance import cross_covariance, variance_by_shape
from mrgp.gp.readings import (
    Posterior,
    Ratio,
    Reading,
    Readings,
    Smoother,
    prior_covariance,
)
from mrgp.gp.variational import Moments, Natural, Sites, Whitened
from mrgp.likelihoods import Likelihood
from mrgp.supports import DEFAULT_RULE, Points, Rule, Support

BLOCK_BYTES = 2**25
KNOWN = 1e-6
LOOSE = 0.05

Whiteners = tuple[Float[Array, "m m"], ...]


class _Anchored(eqx.Module):
    """What solvers have in common whose posterior is a Gaussian by its anchors."""

    kernels: Any
    rule: Rule = eqx.field(static=True, default=DEFAULT_RULE, kw_only=True)
    keeps_data: ClassVar[bool] = False

    def refuses(self, likelihood: Likelihood) -> str | None:
        """Refuse likelihoods without a Gaussian posterior."""
        if likelihood.conjugate:
            return None
        return (
            f"the likelihood {likelihood.name!r} has no Gaussian posterior, and the model is solved"
            ' in closed form. Use likelihood="gaussian"'
        )

    def predict(
        self, state: Posterior, ratio: Ratio, support: Support, joint: bool = False
    ) -> tuple[Float[Array, " n"], Float[Array, "n *n"]]:
        """Return mean and variance of sum_q r_q L f_q, or with `joint` its covariance."""
        asked = state.joint if joint else state.moments
        return asked(self.kernels, ratio, support, self.rule)


class Exact(_Anchored):
    """The dense covariance of all values (theory 2.3).

    >>> from mrgp import RBF, points
    >>> one = jnp.ones(1)
    >>> solver = Exact((RBF(1.0, variance=1.0, dims=0),))
    >>> read = Readings((Reading(points([[0.0]]), one, 2 * one, 0 * one, noise=one),))
    >>> round(float(solver.log_evidence(read)), 3)  # log N(2 | 0, 1 + 1)
    -2.266
    >>> solver.condition(read).alpha.round(3).tolist()  # 2 / (1 + 1)
    [1.0]
    >>> solver.smoother(read).residual.round(3).tolist()  # half of the value is left
    [1.0]
    """

    keeps_data: ClassVar[bool] = True

    def log_evidence(self, readings: Readings) -> Float[Array, ""]:
        """Return the log evidence."""
        density = gaussian_log_density(readings.residual, self._factor(readings))
        return density + readings.tempering

    def condition(self, readings: Readings) -> Posterior:
        """Condition on the readings, anchored at their own supports."""
        root = inverse_lower(self._factor(readings))
        alpha = root.T @ (root @ readings.residual)
        anchors, ratios = zip(*((s.support, s.ratio) for s in readings.sources), strict=True)
        return Posterior(anchors, ratios, alpha, root, jnp.zeros(()))

    def smoother(self, readings: Readings) -> Smoother:
        """Return the smoother of the dense covariance, by its eigenvectors."""
        scale = jnp.sqrt(readings.noise)
        prior = prior_covariance(self.kernels, readings, self.rule)
        eigenvalues, vectors = jnp.linalg.eigh(prior / (scale[:, None] * scale[None, :]))
        shrink = jnp.maximum(eigenvalues, 0.0)
        shrink = shrink / (1.0 + shrink)
        values = vectors.T @ (readings.residual / scale)
        # Directions about which nothing is known have no lift: nothing is to be adjusted there.
        known = eigenvalues > KNOWN
        size = jnp.where(known, eigenvalues, 1.0)
        lift = jnp.where(known, 1.0 / jnp.sqrt(size * (1.0 + size)), 0.0)
        return Smoother(
            basis=jnp.sqrt(shrink)[:, None] * vectors.T,
            residual=vectors @ ((1.0 - shrink) * values),
            lift=vectors * lift[None, :] / scale[:, None],
        )

    def account(self, state: Posterior) -> str:
        """Say that the data are kept."""
        return "exact: the training data are kept in the fit, and saved with it"

    def _factor(self, readings: Readings) -> Float[Array, "n n"]:
        total = add_diagonal(prior_covariance(self.kernels, readings, self.rule), readings.noise)
        return cholesky(total if readings.shared is None else total + readings.shared)


class Collapsed(_Anchored):
    """Inducing inputs `locations` under each kernel, with the best q(u) (theory 2.4).

    Where there is a `q`, of the whitened inducing variables, the bound is the uncollapsed one of
    that q, a sum over rows (theory 2.5).

    >>> from mrgp import RBF, points
    >>> one = jnp.ones(1)
    >>> solver = Collapsed((RBF(1.0, variance=1.0, dims=0),), locations=jnp.zeros((1, 1)))
    >>> read = Readings((Reading(points([[0.0]]), one, 2 * one, 0 * one, noise=one),))
    >>> round(float(solver.log_evidence(read)), 3)  # log N(2 | 0, 1 + 1)
    -2.266
    >>> found = solver.condition(read).moments(solver.kernels, one, points([[0.0]]))
    >>> [round(float(moment[0]), 3) for moment in found]
    [1.0, 0.5]
    """

    locations: Any
    q: Any = None

    def log_evidence(self, readings: Readings) -> Float[Array, ""]:
        """Return the collapsed bound, or that of the solver's own q."""
        if self.q is not None:
            sites = isinstance(self.q, Sites)
            moments, divergence = self.q.natural.moments() if sites else (self.q, self.q.divergence)
            return self.expected_log_likelihood(moments, readings) - divergence
        return self.information(readings).log_evidence + readings.tempering

    def condition(self, readings: Readings) -> Posterior:
        """Condition through inducing inputs with the optimal q(u), or the solver's own sites."""
        if isinstance(self.q, Sites):
            return self._posterior(self.q.shift, jnp.tril(self.q.root), jnp.zeros(()))
        known = self.information(readings)
        # A root of B B^T by eigenvectors, which has no more rows than B.
        eigenvalues, vectors = jnp.linalg.eigh(known.precision)
        basis = vectors * jnp.sqrt(jnp.maximum(eigenvalues, 0.0))[None, :]
        return self._posterior(known.score, basis, known.unexplained / len(readings))

    def smoother(self, readings: Readings) -> Smoother:
        """Return the smoother of the collapsed bound's posterior."""
        whiten = self.whiteners
        parts = [self.features(s, whiten)[0] for s in readings.sources]
        scale = jnp.sqrt(readings.noise)
        white = jax.scipy.linalg.block_diag(*whiten)
        return smoother_of(
            jnp.concatenate(parts, 1) / scale[None, :], readings.residual / scale, white
        )

    def account(self, state: Posterior) -> str:
        """Say how many inducing inputs there are, and what they miss."""
        share = float(state.unexplained)
        each = " each" if len(self.kernels) > 1 else ""
        advice = "; more would help" if share > LOOSE else ""
        return (
            f"sparse: {self.locations.raw.shape[0]} inducing inputs{each}, which miss variance"
            f" worth {share:.1%} of the noise{advice}"
        )

    def optimal_q(self, readings: Readings) -> Natural:
        """Return the best q of the whitened inducing variables: one pass over the readings."""
        known = self.information(readings)
        return Natural.optimal(known.score, known.precision)

    def expected_log_likelihood(
        self, q: Whitened | Moments, readings: Readings
    ) -> Float[Array, ""]:
        """Return E_q[log p(y | L f)], each row times its weight (theory 2.5)."""
        whiten, total = self.whiteners, jnp.zeros(())
        for source in readings.sources:
            alpha, own = self.features(source, whiten)
            spread = own - jnp.sum(alpha**2, 0) + q.quadratic(alpha)
            mean = source.level + alpha.T @ q.mean
            rows = source.likelihood.expected_log_prob(source.y, mean, spread, source.noise)
            total += jnp.sum(source.weight * rows)
        return total

    @property
    def whiteners(self) -> Whiteners:
        """What turns the inducing variables of each GP white."""
        return tuple(whitener(k.cross(self.locations, self.locations)) for k in self.kernels)

    def features(
        self, source: Reading, whiten: Whiteners
    ) -> tuple[Float[Array, "qm n"], Float[Array, " n"]]:
        """Return the covariance of sum_q r_q L f_q with whitened inducing variables, and its own.

        Inducing variables of all GPs are stacked, those of the first GP first.
        """
        support, inducing = source.support, _points(self.locations)
        stacked, own = [], jnp.zeros(len(support))
        for kernel, ratio, white in zip(
            self.kernels, jnp.asarray(source.ratio), whiten, strict=True
        ):
            cross = cross_covariance(kernel, support, inducing, self.rule)
            stacked.append(white @ (ratio * cross).T)
            own = own + ratio**2 * variance_by_shape(kernel, support, source.shapes, self.rule)
        return jnp.concatenate(stacked), own

    def information(self, readings: Readings) -> "Information":
        """Sum the information of all rows, so many at a time that memory does not grow with n."""
        if readings.shared is not None:
            raise ValueError("Inducing inputs cannot tell errors that sources share; be exact.")
        whiten = self.whiteners
        m = len(self.kernels) * self.locations.shape[0]
        size = max(1, BLOCK_BYTES // (8 * m))

        def of_rows(source: Reading, used: Float[Array, " b"]) -> Information:
            alpha, own = self.features(source, whiten)
            noise = source.effective_noise
            scale = used / jnp.sqrt(noise)
            basis, residual = alpha * scale[None, :], source.residual * scale
            return Information(
                precision=basis @ basis.T,
                score=basis @ residual,
                squares=jnp.vdot(residual, residual),
                unexplained=jnp.sum(own * scale**2) - jnp.sum(basis**2),
                log_noise=jnp.sum(used * jnp.log(2.0 * jnp.pi * noise)),
            )

        def of_source(source: Reading) -> Information:
            n = source.y.shape[0]
            if n <= size:
                return of_rows(source, jnp.ones(n))

            # Recomputed in the backward pass: what is kept for it is one small sum a block.
            @jax.checkpoint
            def block(rows: Array) -> Information:
                taken = source.take(jnp.minimum(rows, n - 1))
                return of_rows(taken, jnp.where(rows < n, 1.0, 0.0))

            def add(total: Information, rows: Array) -> tuple[Information, None]:
                return jax.tree.map(jnp.add, total, block(rows)), None

            blocks = math.ceil(n / size)
            rows = jnp.arange(blocks * math.ceil(n / blocks)).reshape(blocks, -1)
            zero = Information(jnp.zeros((m, m)), jnp.zeros(m), *(jnp.zeros(()) for _ in range(3)))
            return jax.lax.scan(add, zero, rows)[0]

        parts = map(of_source, readings.sources)
        return functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), parts)

    def _posterior(
        self,
        score: Float[AnyArray, " qm"],
        basis: Float[Array, "qm r"],
        unexplained: Float[AnyArray, ""],
    ) -> Posterior:
        """Return the posterior of whitened inducing variables of precision I + B B^T, given score.

        I - (I + B B^T)^-1 = B (I + B^T B)^-1 B^T: prediction is one matrix product.
        """
        factor = cholesky(add_diagonal(basis @ basis.T, 1.0))
        whitened = solve_upper(factor, solve_lower(factor, jnp.asarray(score)))
        inner = cholesky(add_diagonal(basis.T @ basis, 1.0))
        white = jax.scipy.linalg.block_diag(*self.whiteners)
        root = solve_lower(inner, basis.T) @ white
        number = len(self.kernels)
        anchors, ratios = (_points(self.locations),) * number, tuple(jnp.eye(number))
        return Posterior(anchors, ratios, white.T @ whitened, root, unexplained)


Solver = Exact | Collapsed
"""A way to find latent functions from what sources read of them.

`keeps_data` says whether its posterior needs the data themselves, which a fit then keeps.
"""


class Information(NamedTuple):
    """What readings say of whitened inducing variables (theory 2.4), summed over rows.

    With B the noise-standardised features and e the noise-standardised residuals: `precision` is
    B B^T, `score` is B e, `squares` is e^T e; `unexplained` is the prior variance outside the span
    of the inducing variables, in units of the noise; `log_noise` is the sum of log 2 pi s2.
    """

    precision: Float[Array, "m m"]
    score: Float[Array, " m"]
    squares: Float[Array, ""]
    unexplained: Float[Array, ""]
    log_noise: Float[Array, ""]

    @property
    def log_evidence(self) -> Float[Array, ""]:
        """The collapsed bound."""
        factor = cholesky(add_diagonal(self.precision, 1.0))
        projected = solve_lower(factor, self.score)
        quadratic = self.squares - jnp.vdot(projected, projected)
        return -0.5 * (quadratic + log_determinant(factor) + self.log_noise + self.unexplained)


def smoother_of(
    features: Float[Array, "m n"], values: Float[Array, " n"], white: Float[Array, "m a"]
) -> Smoother:
    """Smooth values by features of whitened functions, both in units of the noise's sd.

    >>> one = jnp.ones((1, 1))
    >>> smoother_of(one, jnp.array([2.0]), white=one).residual.round(3).tolist()
    [1.0]
    """
    factor = cholesky(add_diagonal(features @ features.T, 1.0))
    basis = solve_lower(factor, features)
    return Smoother(basis, values - basis.T @ (basis @ values), solve_lower(factor, white).T)


def _points(locations: Float[AnyArray, "m d"]) -> Points:
    return Points(locations, jnp.ones(locations.shape[0]))
