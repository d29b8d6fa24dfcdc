"""Grow a tree of GPs part by part: bases on their own data, layers on paths of their parents."""

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp.data import Dataset, Observations, Scaling, as_seed, process_weights
from mrgp.gp import Posterior
from mrgp.kernels import Kernel, Matern32, Separable, Stationary, single_kernels
from mrgp.models.layers import VALUE, layer_observations, layer_recipe, overlap, with_excess
from mrgp.models.mrgp import MRGP
from mrgp.models.parts import Blend, Node, Part
from mrgp.models.recipe import Process
from mrgp.models.single import SingleGP
from mrgp.models.tasks import typical_total
from mrgp.models.tree import States, Tree
from mrgp.parameters import LogNormal, positive

COARSE_NOISE_SHARE, COARSE_NOISE_LOG_SD, COARSE_NOISE_FLOOR = 0.01, 1.0, 1e-6
LINK_LOG_SD = 0.1
FLOOR_ROWS = 2000
LEAST = 1e-12


class Plan(NamedTuple):
    """What a recipe makes of a dataset: the nodes in order, and the mixtures."""

    nodes: tuple[Node, ...]
    blends: tuple[Blend, ...]


class Made(NamedTuple):
    """A part that was built, or fitted: the GP, its posterior, and the scaling of its data.

    >>> from mrgp import points
    >>> data = Dataset([Observations(points([[0.0], [2.0]]), [3.0, 5.0])])
    >>> Made(MRGP().build(data), None, Scaling.of(data)).scaling.offset
    array([4.])
    """

    gp: SingleGP
    state: Posterior
    scaling: Scaling


@runtime_checkable
class Make(Protocol):
    """How a part comes about, from its name, recipe, data and composite weight."""

    def __call__(self, name: str, recipe: MRGP, data: Dataset, weight: float, /) -> Made:
        """Make the part."""
        ...


def grow(
    recipe: Any, plan: Plan, data: Dataset, make: Make, weights: Any = None, key: Any = 0
) -> tuple[Tree, States]:
    """Make the parts of a tree in order, each from its own data, and join them.

    A layer whose parent says nothing where the target was observed is left out, with a warning; in
    a chain, which would break, that is an error.

    >>> import mrgp
    >>> from mrgp.models import conditioned
    >>> def make(name, recipe, data, weight):
    ...     gp, scaling = recipe.build(data), Scaling.of(data)
    ...     return Made(gp, conditioned(gp, [scaling.record(*data, weight)]), scaling)
    >>> data = Dataset([Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0], name="sites")])
    >>> recipe = mrgp.MRDGP()
    >>> tree, states = grow(recipe, recipe.plan(data), data, make)
    >>> [(name, state.alpha.shape) for name, state in states.items()]
    [('base[sites]', (2,))]
    """
    by_process = process_weights(weights, data.processes)
    tree, states, zero = _seedling(recipe, data, key), {}, np.zeros(())
    for node in plan.nodes:
        observed, weight = data[node.process], by_process[node.process]
        if node.parent is None:
            base = _base_recipe(recipe, plan, tree, node, data)
            made = make(node.name, base, Dataset([observed]), weight)
            part = Part(made.gp, made.scaling, zero, zero, zero)
            part = with_floor(part, made.state, observed)
        elif node.parent in {*tree.parts, *(blend.name for blend in tree.blends)}:
            rows = overlap(tree, states, node, observed)
            if not len(rows):
                _say_apart(plan, node, data)
                continue
            seen, slope = layer_observations(tree, states, node, observed.dropna()[rows], recipe)
            layer = layer_recipe(recipe, node, seen, observed)
            made = make(node.name, layer, Dataset([seen]), weight / tree.samples)
            part = Part(made.gp, made.scaling, slope, zero, zero, rows)
        else:
            continue
        states = states | {node.name: made.state}
        tree = dataclasses.replace(
            tree, parts=tree.parts | {node.name: part}, nodes=(*tree.nodes, node)
        )
        if node.parent is not None:
            tree = with_excess(tree, states, node, observed)
        tree = dataclasses.replace(tree, blends=_blends(tree, plan))
    return tree, states


def _seedling(recipe: Any, data: Dataset, key: Any) -> Tree:
    for name in recipe.deep_inputs:
        if name not in data.inputs:
            raise ValueError(
                f"deep_inputs: no input is named {name!r}; the inputs are {data.inputs}."
            )
    _check_maps(recipe)
    return Tree(
        parts={},
        nodes=(),
        blends=(),
        processes=data.processes,
        inputs=data.inputs,
        beside=tuple(data.inputs.index(name) for name in recipe.deep_inputs),
        mixing=recipe.mixing,
        combine=recipe.variance,
        samples=int(recipe.samples),
        seed=as_seed(key),
        rule=recipe.quadrature,
    )


def _check_maps(recipe: Any) -> None:
    """Refuse kernels of maps that see an input which maps do not have, before all else."""
    given, seen = recipe.kernel_deep, (VALUE, *recipe.deep_inputs)
    for kernel in given.values() if isinstance(given, Mapping) else [given]:
        for single in [] if kernel is None else single_kernels(kernel):
            dims = getattr(single, "dims", None)
            named = (dims,) if isinstance(dims, str) else dims or ()
            unknown = [name for name in named if isinstance(name, str) and name not in seen]
            if unknown:
                raise ValueError(
                    f"kernel_deep: maps have no input {unknown[0]!r}; they see {seen}. Name it in"
                    f" deep_inputs=({unknown[0]!r},) too."
                )


def _blends(tree: Tree, plan: Plan) -> tuple[Blend, ...]:
    """Return the mixtures with the experts that there are so far."""
    found = []
    for blend in plan.blends:
        experts = tuple(pair for pair in blend.experts if pair[1] in tree.parts)
        if experts:
            found.append(blend._replace(experts=experts))
    return tuple(found)


def _say_apart(plan: Plan, node: Node, data: Dataset) -> None:
    target, parent = data[node.process], str(node.parent)
    text = (
        f"{target.label} has no value where {parent} knows anything: the two do not overlap, and no"
        " map from the one to the other can be learned."
    )
    if all(len(blend.experts) == 1 for blend in plan.blends):
        raise ValueError(f"{text} Leave that source out of the chain.")
    warnings.warn(
        f"{text} {node.name} is left out; the source can still be predicted.", stacklevel=7
    )


def refreshed(tree: Tree, states: States, data: Dataset) -> Tree:
    """Return a tree whose constants are those of new parameters and posteriors."""
    for node in tree.nodes:
        if node.parent is None:
            part = with_floor(tree.parts[node.name], states[node.name], data[node.process])
            tree = dataclasses.replace(tree, parts=tree.parts | {node.name: part})
        else:
            tree = with_excess(tree, states, node, data[node.process])
    return tree


def with_floor(part: Part, state: Posterior, observed: Observations) -> Part:
    """Record the variance that a base has where there are data."""
    seen = observed.dropna().support
    rows = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), FLOOR_ROWS)).astype(int))
    centres = jnp.asarray(seen[rows].collapse().atoms().lower)
    # The median, not the least: one place known well must not make all others look unknown.
    found, prior = (np.asarray(v) for v in _variances(part, state, centres))
    floor = max(float(np.median(found)), LEAST * float(np.median(prior)))
    return dataclasses.replace(part, floor=np.asarray(floor))


@eqx.filter_jit
def _variances(
    part: Part, state: Posterior, x: Float[Array, "b s d"]
) -> tuple[Float[Array, "b s"], Float[Array, "b s"]]:
    return part.at_nodes(state, x).variance, part.prior_variance(x)


def _base_recipe(recipe: Any, plan: Plan, tree: Tree, node: Node, data: Dataset) -> MRGP:
    """Return the MR-GP of one process."""
    kernel, noise = given_for(recipe.kernel_base, node.process), None
    source, task = node.process
    target = next(blend.target for blend in plan.blends if blend.task == task)
    if source != target and recipe.priors:
        noise = _quiet(data[node.process])
        bases = {n.process: tree.parts[n.name] for n in tree.nodes if n.parent is None}
        fewer = _count(data[node.process]) <= _count(data[target, task])
        if (target, task) in bases and fewer and not isinstance(recipe.kernel_base, Mapping):
            kernel = _linked(kernel, bases[target, task].gp.kernel)
    return MRGP(
        kernel=kernel,
        inducing=given_for(recipe.inducing, node.process),
        method=recipe.method,
        priors=recipe.priors,
        quadrature=recipe.quadrature,
        noise=noise,
    )


def given_for(given: Any, process: Process) -> Any:
    """Return what a recipe has for a process: by (source, task), by source, or one for all."""
    if not isinstance(given, Mapping):
        return given
    return given.get(process, given.get(process[0]))


def _count(observed: Observations) -> int:
    return int(observed.observed.sum())


def _quiet(observed: Observations) -> dict[str, Any] | None:
    """Expect little noise of a source that is not the target.

    A base is to follow its source: what the source reports and is not so is for layers to find.
    """
    if observed.noise_variance is not None or _count(observed) < 2:
        return None
    spread = float(Scaling.of(Dataset([observed])).scale[0]) * typical_total(observed)
    usual = COARSE_NOISE_SHARE * spread**2
    prior = LogNormal(usual, COARSE_NOISE_LOG_SD)
    floor = COARSE_NOISE_FLOOR * spread**2
    return {observed.name: positive(usual, prior, floor=floor, scale=usual)}


def _linked(kernel: Kernel | None, leader: Kernel) -> Kernel | None:
    """Expect the lengthscales of a source near those found for the target.

    Sources of a task see one world. Coarse values alone cannot tell a short lengthscale from
    noise (theory 5.6); the target, where it has more of them, can.
    """
    given = Matern32(product=True) if kernel is None else kernel
    stationary = _stationary(given)
    free = [i for i, single in enumerate(stationary) if single.lengthscale is None]
    if not free:
        return kernel
    values = [np.asarray(_stationary(leader)[i].lengthscale.value) for i in free]
    priors = [positive(v, LogNormal(v, np.full(v.shape, LINK_LOG_SD))) for v in values]
    return eqx.tree_at(
        lambda whole: [_stationary(whole)[i].lengthscale for i in free],
        given,
        priors,
        is_leaf=lambda x: x is None,
    )


def _stationary(kernel: Kernel) -> list[Stationary]:
    """List the stationary kernels that a kernel is composed of, those of a separable one too."""
    found: list[Stationary] = []
    for single in single_kernels(kernel):
        if isinstance(single, Separable):
            found += [inner for part in single.kernels for inner in _stationary(part)]
        elif isinstance(single, Stationary):
            found.append(single)
    return found
