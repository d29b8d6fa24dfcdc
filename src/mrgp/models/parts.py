"""The parts of a deep model: GPs with coordinates of their own, and paths drawn through them."""

import dataclasses
import zlib
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from scipy.special import ndtri

from mrgp._types import AnyArray, to_numpy
from mrgp.data import Record, Scaling
from mrgp.gp import Collapsed, Conditioned, Inducing, Sites, node_roots, start_locations
from mrgp.models.answers import as_arrays
from mrgp.models.contract import Process
from mrgp.models.linear import LinearModel
from mrgp.parameters import Parameter, unwrap
from mrgp.supports import Nodes

JOINT_INDUCING = 100
NOISE_LIMIT = 2.0


class Branch(NamedTuple):
    """A GP of a tree: the process whose values it explains, and the branch whose values it takes.

    A base has no parent. A parent may be a branch, or the mixture of another task; `label` says
    which it is to the user: the source or the task.

    >>> Branch("layer[satellite]", ("sites", "no2"), parent="base[satellite]").process
    ('sites', 'no2')
    """

    name: str
    process: Process
    parent: str | None = None
    label: str = ""


class Blend(NamedTuple):
    """The mixture of a task: a name, and its experts as (label, branch), the target's base first.

    >>> experts = (("sites", "base[sites]"), ("satellite", "layer[satellite]"))
    >>> dict(Blend("no2", "no2", "sites", experts).experts)["satellite"]
    'layer[satellite]'
    """

    name: str
    task: str
    target: str
    experts: tuple[tuple[str, str], ...]


class Outcome(NamedTuple):
    """What a branch says at the nodes of regions: a Gaussian for each path, or one for all."""

    mean: Float[Array, "j b s"]
    covariance: Float[Array, "j b s s"]

    @property
    def variance(self) -> Float[Array, "b s"]:
        """The variance at each node over all paths."""
        within = jnp.diagonal(self.covariance, axis1=-2, axis2=-1)
        return jnp.maximum(jnp.mean(within, 0), 0.0) + jnp.var(self.mean, 0)

    def draws(self, normals: Float[Array, "j s"]) -> Float[Array, "j b s"]:
        """Continue each path by a draw, joint over the nodes of a region."""
        root = node_roots(self.covariance)
        return self.mean + (root @ normals[:, None, :, None])[..., 0]


States = dict[str, Conditioned]
"""The posterior of every part, by the name of its branch."""


class Part(eqx.Module):
    """A GP of a tree, with the scaling of its own data.

    A layer sees values of its parent h and explains what `slope` h leaves of the target. `excess`
    is the variance by which it missed the target, beyond the target's noise and its own account
    of itself. `rows` are the target's values it was trained on, all for a base, and `floor` is the
    variance of a base where it has data.

    >>> import mrgp
    >>> data = mrgp.Dataset([mrgp.Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0])])
    >>> zero = jnp.zeros(())
    >>> float(Part(mrgp.MRGP().build(data), Scaling.of(data), zero, zero, zero).level)
    4.0
    """

    gp: LinearModel
    scaling: Scaling
    slope: Float[AnyArray, ""]
    excess: Float[AnyArray, ""]
    floor: Float[AnyArray, ""]
    rows: AnyArray | None = None

    @property
    def level(self) -> Float[Array, ""]:
        """The offset of the values."""
        return jnp.asarray(self.scaling.offset)[0]

    def record(self, record: Record) -> Record:
        """Return a record of the data in the part's own coordinates."""
        support = record.support.affine(jnp.ones_like(self.scaling.centre), -self.scaling.centre)
        y = jnp.asarray(record.y) - self.level * jnp.asarray(support.total)
        return dataclasses.replace(record, support=support, y=y, lattice=None)

    @property
    def has_sites(self) -> bool:
        """Whether the GP has a q(u) of its own, which a joint fit trains."""
        return isinstance(self.gp.q, Sites)

    def with_sites(self, record: Record, inducing: Any, key: int) -> "Part":
        """Give the GP a q(u) of its own, at inducing inputs, and a limit to its noise."""
        solver = self.gp.solver
        if isinstance(solver, Collapsed):
            locations = solver.locations
        else:
            chosen = Inducing.parse(inducing)
            chosen = dataclasses.replace(chosen, number=chosen.number or JOINT_INDUCING)
            zero, kernel = np.zeros(record.support.dimension), unwrap(self.gp.kernel)
            locations = start_locations(chosen, (record.support,), zero, kernel, key)
        gp = dataclasses.replace(self.gp, noise=self.gp.noise.changed(_limited))
        gp = gp.with_sites(locations, as_arrays((record,)))
        return dataclasses.replace(self, gp=to_numpy(gp))

    def report(self) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        return self.gp.report(self.scaling)

    def centred(self, x: Float[Array, "b s d"]) -> Float[Array, "b s d"]:
        """Return nodes in the part's own coordinates."""
        return x - self.scaling.centre[None, None, :]

    def at_nodes(self, state: Conditioned, x: Float[Array, "b s d"]) -> Outcome:
        """Return what a base says at nodes."""
        found = self.gp.at_nodes(state, self.centred(x))
        return Outcome(found.mean[None] + self.level, found.covariance[None])

    def prior_variance(self, x: Float[Array, "b s d"]) -> Float[Array, "b s"]:
        """Return the variance of a base before any data."""
        centred = self.centred(x)
        return unwrap(self.gp.kernel).pair(centred, centred)

    def after(
        self, state: Conditioned, h: Float[Array, "j b s"], x: Float[Array, "b s k"]
    ) -> Outcome:
        """Return what a layer says at nodes, for each path of its parent."""
        paths, b, s = h.shape
        inputs = deep_inputs(h, x).reshape(paths * b, s, -1)
        found = self.gp.at_nodes(state, self.centred(inputs))
        mean = found.mean.reshape(h.shape) + self.level + self.slope * h
        covariance = found.covariance.reshape(paths, b, s, s) + self.excess
        return Outcome(mean, covariance)


class LayerMap(NamedTuple):
    """The map that a layer learned, from values of its parent to those of the target."""

    part: Part
    name: str
    label: str
    target: str
    task: str
    source_task: str
    beside: tuple[str, ...]

    def range(self) -> tuple[float, float]:
        """The least and the greatest value that it was learned on."""
        places = np.asarray(self.part.gp.solver.locations.value)[:, 0]
        centre = float(np.asarray(self.part.scaling.centre)[0])
        return centre + float(places.min()), centre + float(places.max())

    def centre(self) -> Float[np.ndarray, " b"]:
        """The middle of the data in the other inputs."""
        return np.asarray(self.part.scaling.centre)[1:]

    def scatter(self) -> float:
        """The standard deviation of the target about the map."""
        return float(np.sqrt(self.part.excess))

    def evaluate(
        self, state: States, values: Float[np.ndarray, " n"], at: Float[np.ndarray, " b"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return mean and variance of the target at values of the source, at one place."""
        beside = np.broadcast_to(at, (len(values), 1, len(at)))
        given = as_arrays((self.part, state[self.name], values[None, :, None], beside))
        mean, variance = _mapped(*given)
        return np.asarray(mean), np.asarray(variance)


@eqx.filter_jit
def _mapped(
    part: Part, state: Conditioned, h: Float[Array, "1 n 1"], beside: Float[Array, "n 1 b"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    found = part.after(state, h, beside)
    variance = found.covariance[0, :, 0, 0] - jnp.asarray(part.excess)
    return found.mean[0, :, 0], jnp.maximum(variance, 0.0)


def _limited(noise: Parameter) -> Parameter:
    """Hold a noise below a multiple of what it is."""
    ceiling = np.asarray(NOISE_LIMIT * noise.value)
    return eqx.tree_at(lambda p: p.transform.ceiling, noise, ceiling)


def deep_inputs(
    h: Float[AnyArray, "j b s"], x: Float[AnyArray, "b s k"]
) -> Float[Array, "j b s c"]:
    """Join the values of a parent with the inputs that a layer sees beside them."""
    beside = jnp.broadcast_to(jnp.asarray(x)[None], (h.shape[0], *x.shape))
    return jnp.concatenate([jnp.asarray(h)[..., None], beside], -1)


def layer_record(
    slope: Float[AnyArray, ""],
    h: Float[Array, "j n s"],
    record: Record,
    x: Float[Array, "n s k"],
    weights: Float[Array, "n s"],
) -> Record:
    """Return the values that a layer explains, once for each path, each weighted by its share.

    The expected log likelihood over paths of the parent is that of values with composite weights
    of one over the number of paths (theory 5.4).
    """
    paths = h.shape[0]
    inputs = deep_inputs(h, x).reshape(-1, *h.shape[2:], x.shape[-1] + 1)
    support = Nodes(inputs, jnp.tile(weights, (paths, 1)))
    left = jnp.asarray(record.y)[None] - slope * jnp.sum(weights[None] * h, -1)
    weight = jnp.asarray(record.weight) / paths
    weight = jnp.tile(weight, paths) if weight.ndim else weight
    return Record(support, left.ravel(), None, weight, likelihood=record.likelihood)


def normals(key: Array, name: str, paths: int, nodes: int) -> Float[Array, "j s"]:
    """Return standard normal numbers for the paths through a branch of the tree.

    At every node of a region they are the same quantiles in an order of its own: paths fill the
    distribution evenly, and belong to the model, not to the regions predicted together.
    """
    if isinstance(key, Tracer):
        return _ordered(jax.random.fold_in(key, zlib.crc32(name.encode())), paths, nodes)
    # Numbers of a known key, as in training, are constants: compilers need not hear of them.
    with jax.ensure_compile_time_eval():
        return _ordered(jax.random.fold_in(key, zlib.crc32(name.encode())), paths, nodes)


@eqx.filter_jit
def _ordered(key: Array, paths: int, nodes: int) -> Float[Array, "j s"]:
    quantiles = ndtri((np.arange(paths) + 0.5) / paths)
    quantiles = quantiles / max(float(np.std(quantiles)), 1e-12) if paths > 1 else quantiles
    order = jax.vmap(lambda s: jax.random.permutation(jax.random.fold_in(key, s), paths))
    return jnp.asarray(quantiles)[order(jnp.arange(nodes))].T
