"""The factors of a network, f and W, and posteriors of them (theory 3.2)."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mrgp._linalg import inverse_lower
from mrgp.gp import Mixture, Moments, Natural, Whitened
from mrgp.parameters import fixed, real

SPREAD = 0.2


class Factors(eqx.Module):
    """Something for each latent function, `f`, and for each weight, `w` by task and then latent.

    As a posterior it has one entry for each group of latent functions that q couples.

    >>> factors = Factors(f=(1, 2), w=((10, 20), (30, 40)))
    >>> factors.of_task(1), factors.map(lambda part: -part).parts()
    ([(1, 30), (2, 40)], [-1, -2, -10, -20, -30, -40])
    """

    f: tuple[Any, ...]
    w: tuple[tuple[Any, ...], ...]

    def of_task(self, task: int) -> list[tuple[Any, Any]]:
        """Return the pairs of latent functions and weights that make up a task."""
        return list(zip(self.f, self.w[task], strict=True))

    def map(self, function: Callable[..., Any], *others: "Factors") -> "Factors":
        """Apply a function to every factor."""
        f = tuple(function(*parts) for parts in zip(self.f, *(o.f for o in others), strict=True))
        rows = zip(self.w, *(o.w for o in others), strict=True)
        w = tuple(tuple(function(*parts) for parts in zip(*row, strict=True)) for row in rows)
        return Factors(f, w)

    def with_f(self, group: int, value: Any) -> "Factors":
        """Replace what belongs to one group of latent functions."""
        return Factors((*self.f[:group], value, *self.f[group + 1 :]), self.w)

    def with_w(self, group: int, values: Sequence[Any]) -> "Factors":
        """Replace what belongs to the weights of one group, one for each task."""
        pairs = zip(self.w, values, strict=True)
        return Factors(self.f, tuple((*r[:group], v, *r[group + 1 :]) for r, v in pairs))

    def parts(self) -> list[Any]:
        """List all factors."""
        return [*self.f, *(w for row in self.w for w in row)]


def prior_q(groups: tuple[tuple[int, ...], ...], tasks: int, size_f: int, size_w: int) -> Mixture:
    """Return the prior as a q of one component to train."""

    def block(size: int) -> Whitened:
        return Whitened(real(np.zeros((1, size))), real(np.eye(size)[None]))

    blocks = Factors(
        tuple(block(len(g) * size_f) for g in groups),
        tuple(tuple(block(len(g) * size_w) for g in groups) for _ in range(tasks)),
    )
    return Mixture(fixed(np.zeros(1)), blocks)


def trained_q(moments: Factors) -> Mixture:
    """Return Gaussian factors as a q of one component to train.

    >>> q = trained_q(Factors((Moments(np.ones(1), np.array([[4.0]])),), ()))
    >>> q.blocks.f[0].mean.value.tolist(), q.blocks.f[0].root.value.tolist()
    ([[1.0]], [[[2.0]]])
    """

    def block(q: Moments | Whitened) -> Whitened:
        root = q.root if isinstance(q, Whitened) else np.linalg.cholesky(np.asarray(q.covariance))
        return Whitened(real(np.asarray(q.mean)[None]), real(np.asarray(root)[None]))

    return Mixture(fixed(np.zeros(1)), moments.map(block))


def spread_q(q: Mixture, components: int, seed: int, spread: float = SPREAD) -> Mixture:
    """Return a q of several components about one, `spread` standard deviations apart.

    Equal ones would remain equal in a fit.

    >>> one = trained_q(Factors((Moments(np.zeros(1), np.eye(1)),), ()))
    >>> spread_q(one, components=3, seed=0).blocks.f[0].mean.value.round(3).tolist()
    [[0.025], [-0.026], [0.128]]
    """
    rng = np.random.default_rng(seed)

    def block(one: Whitened) -> Whitened:
        root = np.tril(np.asarray(one.root.value)[0])
        draws = spread * rng.standard_normal((components, len(root)))
        means = np.asarray(one.mean.value)[0] + draws @ root.T
        roots = np.broadcast_to(root, (components, *root.shape))
        return Whitened(real(means), real(roots))

    return Mixture(real(np.zeros(components)), q.blocks.map(block))


def naturals_of(q: Mixture, component: int = 0) -> Factors:
    """Return one component of a q (unwrapped) by its natural parameters.

    >>> q = Mixture(np.zeros(1), Factors((Whitened(np.ones((1, 1)), np.full((1, 1, 1), 0.5)),), ()))
    >>> (natural,) = naturals_of(q).f
    >>> natural.shift.tolist(), natural.precision.tolist()
    ([4.0], [[4.0]])
    """

    def natural(block: Whitened) -> Natural:
        inverse = inverse_lower(jnp.tril(jnp.asarray(block.root[component])))
        precision = inverse.T @ inverse
        return Natural(precision @ block.mean[component], precision)

    return q.blocks.map(natural)
