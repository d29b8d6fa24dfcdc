"""How latent functions are found from readings: exactly, or through inducing inputs.

A solver holds the kernels, and what its way of solving needs; it gives the log evidence of
readings (or a bound on it), their posterior, how that smooths them, and predictions.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp import _linalg
from mrgp._linalg import (
    add_diagonal,
    cholesky,
    log_density,
    log_determinant,
    solve_lower,
    whitener,
)
from mrgp._types import AnyArray
from mrgp.devices import beyond, shares, sum_shared
from mrgp.gp.covariance import cross_covariance, variance_by_shape
from mrgp.gp.forms import for_each
from mrgp.gp.readings import (
    Posterior,
    Ratio,
    Reading,
    Readings,
    Smoother,
    prior_covariance,
    some,
)
from mrgp.gp.variational import Moments, Natural, Sites, Whitened
from mrgp.kernels import Kernel
from mrgp.parameters import unwrap
from mrgp.supports import DEFAULT_RULE, Points, Rule, Support

BLOCK_BYTES = 2**25
KNOWN = 1e-6
LOOSE = 0.05

Whiteners = tuple[Float[AnyArray, "m m"], ...]


class Anchored(eqx.Module):
    """What solvers have in common whose posterior is a Gaussian by its anchors."""

    kernels: Any
    rule: Rule = eqx.field(static=True, default=DEFAULT_RULE, kw_only=True)
    keeps_data: ClassVar[bool] = False
    fills: ClassVar[bool] = True

    def plan_of(self, supports: Sequence[Support]) -> Any:
        """Return what can be found of supports before parameters are known: here, nothing."""
        return None

    def with_plan(self, plan: Any) -> "Anchored":
        """Return the solver for the supports of a plan; this one needs none."""
        return self

    def predict(
        self, state: Any, ratio: Ratio, support: Support, joint: bool = False
    ) -> tuple[Float[Array, " n"], Float[Array, "n *n"]]:
        """Return mean and variance of sum_q r_q L f_q, or with `joint` its covariance."""
        asked = state.joint if joint else state.moments
        return asked(self.kernels, ratio, support, self.rule)

    def has_dense(self, count: int) -> bool:
        """Tell whether there is a dense covariance of so many values: here, always."""
        return True

    def dense(self, count: int, wanted_by: str) -> Any:
        """Return the solver by the dense covariance of so many values: here, itself."""
        return self

    def work(self, count: int) -> float:
        """Return about how many multiplications the evidence of so many values takes."""
        return float(count) ** 3

    def part(
        self, state: Any, term: Kernel, support: Support
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and covariance of the part L g of the first function, f = g + others.

        `term` is the kernel of g, one of those whose sum is the kernel of f (unwrapped).
        """
        first = np.eye(len(self.kernels))[0]
        return state.joint((term, *self.kernels[1:]), first, support, self.rule)


class Exact(Anchored):
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
        known = self.gather(readings)
        constant = 0.5 * jnp.log(2.0 * jnp.pi) * jnp.sum(readings.used)
        return log_density(known.residual, known.covariance) - constant + readings.tempering

    def condition(self, readings: Readings) -> Posterior:
        """Condition on the readings, anchored at their own supports."""
        return self.posterior(self.gather(readings), [s.support for s in readings.sources])

    def gather(self, readings: Readings) -> "Dense":
        """Return the covariance of all values, noise included, and their residuals."""
        total = add_diagonal(prior_covariance(self.kernels, readings, self.rule), readings.noise)
        if readings.shared is not None:
            total = total + readings.shared
        ratios = tuple(jnp.asarray(source.ratio) for source in readings.sources)
        return Dense(total, readings.residual, ratios)

    def posterior(
        self, known: "Dense", supports: Sequence[Support], by: Any = _linalg
    ) -> Posterior:
        """Return the posterior from what was gathered of values on some supports.

        `by` is the linear algebra to use, `_linalg` or, on the host, `_lapack`.
        """
        root = by.inverse_lower(by.cholesky(known.covariance))
        alpha = root.T @ (root @ known.residual)
        return Posterior(tuple(supports), known.ratios, alpha, root, np.zeros(()))

    def marginals(self, readings: Readings) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return the posterior mean and variance of what each value sees, without noise."""
        prior = prior_covariance(self.kernels, readings, self.rule)
        factor = cholesky(add_diagonal(prior, readings.noise))
        root = solve_lower(factor, prior)
        level = jnp.concatenate([jnp.asarray(source.level) for source in readings.sources])
        mean = level + root.T @ solve_lower(factor, readings.residual)
        return mean, jnp.maximum(jnp.diag(prior) - jnp.sum(root**2, 0), 0.0)

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


class Collapsed(Anchored):
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

    def work(self, count: int) -> float:
        """Return about how many multiplications the evidence of so many values takes."""
        return float(count) * unwrap(self.locations).shape[0] ** 2

    def log_evidence(self, readings: Readings) -> Float[Array, ""]:
        """Return the collapsed bound, or that of the solver's own q."""
        if self.q is not None:
            sites = isinstance(self.q, Sites)
            moments, divergence = self.q.natural.moments() if sites else (self.q, self.q.divergence)
            return self.expected_log_likelihood(moments, readings) - divergence
        return self.information(readings).log_evidence + readings.tempering

    def condition(self, readings: Readings) -> Posterior:
        """Condition through inducing inputs with the optimal q(u), or the solver's own sites."""
        return self.posterior(self.gather(readings))

    def gather(self, readings: Readings) -> "Sparse":
        """Return what the readings say of inducing variables, and what turns those white."""
        own = isinstance(self.q, Sites)
        said = (self.q.shift, jnp.tril(self.q.root)) if own else self.information(readings)
        return Sparse(said, jnp.sum(readings.used), self.whiteners, self.locations)

    def posterior(
        self, known: "Sparse", supports: Sequence[Support] = (), by: Any = _linalg
    ) -> Posterior:
        """Return the posterior from what was gathered; its anchors are the inducing inputs.

        I - (I + B B^T)^-1 = B (I + B^T B)^-1 B^T: prediction is one matrix product.
        """
        if isinstance(known.said, Information):
            # A root of B B^T by eigenvectors, which has no more rows than B.
            eigenvalues, vectors = by.eigh(known.said.precision)
            score, basis = known.said.score, vectors * eigenvalues.clip(0.0)[None, :] ** 0.5
            unexplained = known.said.unexplained / known.rows
        else:
            (score, basis), unexplained = known.said, np.zeros(())
        factor = by.cholesky(by.add_diagonal(basis @ basis.T, 1.0))
        whitened = by.solve_upper(factor, by.solve_lower(factor, score))
        inner = by.cholesky(by.add_diagonal(basis.T @ basis, 1.0))
        white = by.block_diagonal(known.whiten)
        root = by.solve_lower(inner, basis.T) @ white
        number = len(known.whiten)
        anchors, ratios = (_points(known.locations),) * number, tuple(np.eye(number))
        return Posterior(anchors, ratios, white.T @ whitened, root, unexplained)

    def marginals(self, readings: Readings) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return the posterior mean and variance of what each value sees, without noise."""
        q, _ = self.optimal_q(readings).moments()
        whiten, means, variances = self.whiteners, [], []
        for source in readings.sources:
            alpha, own = self.features(source, whiten)
            means.append(source.level + alpha.T @ q.mean)
            variances.append(own - jnp.sum(alpha**2, 0) + q.quadratic(alpha))
        return jnp.concatenate(means), jnp.maximum(jnp.concatenate(variances), 0.0)

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

        def of_rows(source: Reading, used: Float[Array, " b"]) -> Float[Array, ""]:
            alpha, own = self.features(source, whiten)
            spread = own - jnp.sum(alpha**2, 0) + q.quadratic(alpha)
            mean = source.level + alpha.T @ q.mean
            return jnp.vdot(used, source.expected(mean, spread))

        for source in readings.sources:
            n = source.y.shape[0]
            if shares() == 1:
                total += of_rows(source, jnp.ones(n))
            else:
                total += sum_shared(lambda rows, source=source: of_rows(*some(source, rows)), n)
        return total

    @property
    def whiteners(self) -> Whiteners:
        """What turns the inducing variables of each GP white."""
        return tuple(
            for_each(lambda k: whitener(k.cross(self.locations, self.locations)), self.kernels)
        )

    def features(
        self, source: Reading, whiten: Whiteners
    ) -> tuple[Float[Array, "qm n"], Float[Array, " n"]]:
        """Return the covariance of sum_q r_q L f_q with whitened inducing variables, and its own.

        Inducing variables of all GPs are stacked, those of the first GP first.
        """
        support, inducing = source.support, _points(self.locations)
        stacked, own = [], jnp.zeros(len(support))

        def seen(kernel: Kernel) -> tuple[Array, Array]:
            lattices = source.lattice, None
            cross = cross_covariance(kernel, support, inducing, self.rule, lattices)
            return cross, variance_by_shape(kernel, support, source.shapes, self.rule)

        found = for_each(seen, self.kernels)
        for (cross, spread), ratio, white in zip(
            found, jnp.asarray(source.ratio), whiten, strict=True
        ):
            stacked.append(white @ (ratio * cross).T)
            own = own + ratio**2 * spread
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
            noise, used = source.effective_noise, source.masked(used)
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
            if n <= size and shares() == 1:
                return of_rows(source, jnp.ones(n))

            # Recomputed in the backward pass: what is kept for it is one small sum a block.
            @jax.checkpoint
            def block(rows: Array) -> Information:
                return of_rows(*some(source, rows))

            def add(total: Information, rows: Array) -> tuple[Information, None]:
                return jax.tree.map(jnp.add, total, block(rows)), None

            def of_share(rows: Array) -> Information:
                blocks = math.ceil(rows.shape[0] / size)
                rows = beyond(rows, blocks * math.ceil(rows.shape[0] / blocks), n)
                return jax.lax.scan(add, zero, rows.reshape(blocks, -1))[0]

            zero = Information(jnp.zeros((m, m)), jnp.zeros(m), *(jnp.zeros(()) for _ in range(3)))
            return sum_shared(of_share, n)

        parts = map(of_source, readings.sources)
        return functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), parts)


class Dense(NamedTuple):
    """The covariance of all values, their residuals, and how each source reads the functions."""

    covariance: Float[AnyArray, "n n"]
    residual: Float[AnyArray, " n"]
    ratios: tuple[Ratio, ...]

    def take(self, rows: Int[np.ndarray, " r"]) -> "Dense":
        """Return some rows."""
        return Dense(self.covariance[np.ix_(rows, rows)], self.residual[rows], self.ratios)


class Sparse(NamedTuple):
    """What so many `rows` say of whitened inducing variables, or a q of their own: score and root.

    `whiten` turns the variables at `locations` white.
    """

    said: "Information | tuple[Any, Any]"
    rows: Float[AnyArray, ""]
    whiten: Whiteners
    locations: Float[AnyArray, "m d"]

    def take(self, rows: Int[np.ndarray, " r"]) -> "Sparse":
        """Return what all rows say: it is a sum, to which rows that are not used add nothing."""
        return self


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
    space = np if isinstance(locations, np.ndarray) else jnp
    return Points(locations, space.ones(locations.shape[0]))
