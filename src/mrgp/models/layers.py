"""A layer of a tree: what it is trained on, its kernel, and what it leaves unexplained."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp.data import Dataset, Observations, Record, Scaling
from mrgp.kernels import RBF, Constant, Kernel, Linear, Matern32
from mrgp.models.at_nodes import nodes_of
from mrgp.models.mrgp import COLLAPSED_LIMIT, MRGP
from mrgp.models.parts import Node
from mrgp.models.tree import States, Tree, over_nodes
from mrgp.parameters import LogNormal, fixed, positive
from mrgp.supports import Geometry, Nodes, Support

VALUE = "value"
"""The name under which a layer's kernel sees the values of its parent."""

OVERLAP = 0.5
BEND_LENGTH, BEND_LENGTH_LOG_SD = 1.0, 0.5
BEND_SHARE, BEND_LOG_SD = 0.1, 1.0
FEW, MANY = 50, 200
SCARCE = 5


def overlap(
    tree: Tree, states: States, node: Node, observed: Observations
) -> Int[np.ndarray, " r"]:
    """Return the observed values of a target in whose regions a node's parent knows something."""
    record = _as_record(observed.dropna())
    known = _reliability(tree, states, str(node.parent), record.support)
    return np.flatnonzero(np.asarray(known) >= OVERLAP)


@eqx.filter_jit
def _reliability(tree: Tree, states: States, name: str, support: Support) -> Float[Array, " n"]:
    x, weights = nodes_of(tree, support)
    size = jnp.abs(weights) / jnp.sum(jnp.abs(weights), 1, keepdims=True)
    return jnp.sum(size * tree.reliability(states, name, x), 1)


def _as_record(observed: Observations) -> Record:
    support = observed.support.shift(np.zeros(observed.support.dimension))
    return Record(support, observed.y, None, np.ones(()))


def layer_observations(
    tree: Tree, states: States, node: Node, observed: Observations, recipe: Any
) -> tuple[Observations, Float[np.ndarray, ""]]:
    """Return what a layer is to explain, once for each path of its parent, and the prior's slope.

    With an identity for a mean, the layer explains what the parent's values leave of the target's;
    values of another task are first brought to the target's spread.
    """
    record = _as_record(observed)
    slope = np.asarray(1.0 if recipe.mean_deep == "identity" else 0.0)
    found = _layer_data(tree, states, node, record, jnp.asarray(slope))
    if _crosses_tasks(tree, node) and recipe.mean_deep == "identity":
        values = np.asarray(found.support.atoms().lower)[..., 0]
        slope = np.asarray(_spread(observed) / (np.std(values) or 1.0))
        found = _layer_data(tree, states, node, record, jnp.asarray(slope))
    atoms = found.support.atoms()
    support = Nodes(
        np.asarray(atoms.lower),
        np.asarray(atoms.weights),
        inputs=(VALUE, *recipe.deep_inputs),
        kind=observed.support.kind,
    )
    source, task = node.process
    return Observations(support, np.asarray(found.y), task=task, name=source), slope


@eqx.filter_jit
def _layer_data(tree: Tree, states: States, node: Node, record: Record, slope: Array) -> Record:
    return tree.layer_data(states, node, record, slope)


def _crosses_tasks(tree: Tree, node: Node) -> bool:
    blend = next((b for b in tree.blends if b.name == node.parent), None)
    parent = next((n for n in tree.nodes if n.name == node.parent), None)
    task = blend.task if blend is not None else parent.process[1] if parent else None
    return task != node.process[1]


def _spread(observed: Observations) -> float:
    """Return the spread of the field behind some values, whether they are means or totals."""
    return float(Scaling.of(Dataset([observed])).scale[0])


def layer_recipe(recipe: Any, node: Node, seen: Observations, target: Observations) -> MRGP:
    """Return the MR-GP of a layer over values of its parent, and the inputs beside them."""
    given = recipe.kernel_deep
    if isinstance(given, Mapping):
        given = given.get(str(node.label))
    few = FEW if seen.support.dimension == 1 else MANY
    scarce = len(seen) < SCARCE * int(recipe.samples)
    spread = max(_spread(seen), _spread(target) if scarce else 0.0)
    if given is None:
        given = default_map(seen, recipe.deep_inputs, spread, scarce)
    return MRGP(
        kernel=given,
        inducing=few if recipe.inducing_deep is None else recipe.inducing_deep,
        method="svgp" if len(seen) > COLLAPSED_LIMIT else "collapsed",
        mean="linear" if recipe.mean_deep == "linear" else "constant",
        priors=recipe.priors,
        quadrature=recipe.quadrature,
    )


def default_map(
    seen: Observations, beside: tuple[str, ...], spread: float, scarce: bool = False
) -> Kernel:
    """Return a kernel of smooth maps: a line, a bend, and with inputs beside, both drifting.

    The line extrapolates, and the uncertainty of its slope with it (theory 5.2). The bend is
    expected to be small, and as wide as the range of the values. Where values are `scarce`, what
    they leave does not tell how wrong a line may be: its slope is then uncertain by about one, and
    its level by the spread of the target.
    """
    length = BEND_LENGTH * float(Geometry.of([seen.support]).extent[0])
    small = BEND_SHARE * spread**2
    bend = RBF(
        lengthscale=positive(length, LogNormal(length, BEND_LENGTH_LOG_SD)),
        variance=positive(small, LogNormal(small, BEND_LOG_SD)),
        dims=VALUE,
    )
    line = Linear(dims=VALUE) + Constant()
    if scarce:
        line = Linear(dims=VALUE, variance=fixed(1.0)) + Constant(variance=fixed(spread**2))
    if not beside:
        return line + bend
    drift = Matern32(product=True, dims=beside)
    return line + bend + drift + Linear(dims=VALUE) * Matern32(product=True, dims=beside)


def with_excess(tree: Tree, states: States, node: Node, observed: Observations) -> Tree:
    """Record by how much a layer missed the target, beyond the target's own noise.

    A layer's noise has in it the target's, the spread of the paths and the layer's own variance,
    of which a prediction gives account anyway. What is left is uncertainty about the target.
    """
    part = dataclasses.replace(tree.parts[node.name], excess=np.zeros(()))
    tree = dataclasses.replace(tree, parts=tree.parts | {node.name: part})
    record = _as_record(observed.dropna()[part.rows])
    told, total = _account(tree, states, node.name, record.support)
    noise = part.gp.observation_noise(node.process)
    excess = max(0.0, noise - tree.observation_noise(node.process) - float(told)) / float(total)
    changed = dataclasses.replace(part, excess=np.asarray(excess))
    return dataclasses.replace(tree, parts=tree.parts | {node.name: changed})


@eqx.filter_jit
def _account(tree: Tree, states: States, name: str, support: Support) -> tuple[Array, Array]:
    """Return the mean variance that a layer gives for regions, and the mean square of L 1."""
    x, weights = nodes_of(tree, support)
    outcome = tree.outcome(states, name, x, tree.key, tree.samples)
    means, variances = over_nodes(outcome, weights)
    return jnp.mean(jnp.mean(variances, 1) + jnp.var(means, 1)), jnp.mean(weights.sum(1) ** 2)
