"""How a tree of GPs comes about, part by part: what each explains, and how it joins the others.

A base explains the values of its own source; a layer explains those of the target, over paths of
its parent. Whoever makes the parts goes through the branches of a plan in order:

    growth = Growth.begin(recipe, plan, data, weights, key)
    for branch in plan.branches:
        wanted = growth.wanted(branch)
        if wanted is not None:
            growth = growth.joined(wanted, made)  # made: a GP fitted to wanted.data, and its state
"""

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mrgp._compiled import Compiled, filled
from mrgp.data import (
    Dataset,
    Observations,
    Record,
    Scaling,
    as_seed,
    by_process,
    process_weights,
    spread_of,
)
from mrgp.gp import Conditioned, Markov, nodes_of
from mrgp.kernels import (
    RBF,
    Constant,
    Kernel,
    Linear,
    Matern32,
    single_kernels,
)
from mrgp.models.answers import as_arrays
from mrgp.models.contract import Process
from mrgp.models.defaults import linked
from mrgp.models.mrgp import COLLAPSED_LIMIT, MRGP
from mrgp.models.noise import typical_total
from mrgp.models.parts import Blend, Branch, Part, States
from mrgp.models.tree import Tree
from mrgp.parameters import LogNormal, fixed, positive
from mrgp.supports import Geometry, Nodes, Support

VALUE = "value"
"""The name under which a layer's kernel sees the values of its parent."""

COARSE_NOISE_SHARE, COARSE_NOISE_LOG_SD, COARSE_NOISE_FLOOR = 0.01, 1.0, 1e-6
FLOOR_ROWS = 2000
LEAST = 1e-12
OVERLAP = 0.5
BEND_LENGTH, BEND_LENGTH_LOG_SD = 1.0, 0.5
BEND_SHARE, BEND_LOG_SD = 0.1, 1.0
FEW, MANY = 50, 200
SCARCE = 5


class Plan(NamedTuple):
    """What a recipe makes of a dataset: the branches in order, and the mixtures."""

    branches: tuple[Branch, ...]
    blends: tuple[Blend, ...]


class Made(NamedTuple):
    """A part that was built, or fitted: the GP, its posterior, and the scaling of its data.

    >>> from mrgp import points
    >>> data = Dataset([Observations(points([[0.0], [2.0]]), [3.0, 5.0])])
    >>> Made(MRGP().build(data), None, Scaling.of(data)).scaling.offset
    array([4.])
    """

    gp: Any
    state: Conditioned
    scaling: Scaling


class Wanted(NamedTuple):
    """The GP that a branch needs: its recipe, what it is to explain, and with which weight.

    A layer explains what `slope` times its parent leaves of some `rows` of the target.
    """

    branch: Branch
    recipe: MRGP
    data: Dataset
    weight: float
    slope: Float[np.ndarray, ""]
    rows: Int[np.ndarray, " r"] | None = None


@dataclasses.dataclass(frozen=True)
class Growth:
    """A tree with the parts that it has so far, and their posteriors.

    >>> import mrgp
    >>> from mrgp.models import conditioned
    >>> data = Dataset([Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0], name="sites")])
    >>> growth = Growth.begin(mrgp.MRDGP(), mrgp.MRDGP().plan(data), data)
    >>> wanted = growth.wanted(growth.plan.branches[0])
    >>> gp, scaling = wanted.recipe.build(wanted.data), Scaling.of(wanted.data)
    >>> state = conditioned(gp, scaling.records(wanted.data))
    >>> list(growth.joined(wanted, Made(gp, state, scaling)).states)
    ['base[sites]']
    """

    recipe: Any
    plan: Plan
    data: Dataset
    weights: dict[Process, float]
    tree: Tree
    states: States

    @classmethod
    def begin(
        cls, recipe: Any, plan: Plan, data: Dataset, weights: Any = None, key: Any = 0
    ) -> "Growth":
        """Begin with a tree that has no parts, and refuse what no part could have."""
        for name in recipe.deep_inputs:
            if name not in data.inputs:
                raise ValueError(
                    f"deep_inputs: no input is named {name!r}; the inputs are {data.inputs}."
                )
        _check_maps(recipe)
        tree = Tree(
            parts={},
            branches=(),
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
        weighted = process_weights(weights, data.processes)
        growth = cls(recipe, plan, data, weighted, tree, {})
        growth._check_joint()
        return growth

    def _check_joint(self) -> None:
        """Refuse to train parts together of which one would be solved along time."""
        if self.recipe.method != "auto" or "joint" not in self.recipe.stages:
            return
        for branch in (b for b in self.plan.branches if b.parent is None):
            alone = Dataset([self.data[branch.process]])
            built = self._base_recipe(branch).build(alone)
            if isinstance(getattr(built, "solver", None), Markov):
                where = f'method="auto", which solves {branch.name} along time,'
                raise ValueError(refused_joint(type(self.recipe).__name__, where))

    def wanted(self, branch: Branch) -> Wanted | None:
        """Return the part that comes next, or None where its parent is not there.

        A layer whose parent says nothing where the target was observed is left out, with a
        warning; in a chain, which would break, that is an error.
        """
        observed, weight = self.data[branch.process], self.weights[branch.process]
        if branch.parent is None:
            made = Dataset([observed])
            return Wanted(branch, self._base_recipe(branch), made, weight, np.zeros(()))
        if branch.parent not in {*self.tree.parts, *(blend.name for blend in self.tree.blends)}:
            return None
        rows = self._overlap(branch, observed)
        if not len(rows):
            self._say_apart(branch)
            return None
        seen, slope = self._layer_data(branch, observed.dropna()[rows])
        layer = layer_recipe(self.recipe, branch, seen, observed)
        return Wanted(branch, layer, Dataset([seen]), weight / self.tree.samples, slope, rows)

    def joined(self, wanted: Wanted, made: Made) -> "Growth":
        """Return the tree with one more part."""
        branch, zero = wanted.branch, np.zeros(())
        part = Part(made.gp, made.scaling, wanted.slope, zero, zero, wanted.rows)
        parts = self.tree.parts | {branch.name: part}
        states = self.states | {branch.name: made.state}
        blends = tuple(
            blend._replace(experts=experts)
            for blend in self.plan.blends
            if (experts := tuple(pair for pair in blend.experts if pair[1] in parts))
        )
        branches = (*self.tree.branches, branch)
        tree = dataclasses.replace(self.tree, parts=parts, branches=branches, blends=blends)
        tree = with_constants(tree, states, branch, self.data[branch.process])
        return dataclasses.replace(self, tree=tree, states=states)

    def _base_recipe(self, branch: Branch) -> MRGP:
        """Return the MR-GP of one process."""
        recipe, observed = self.recipe, self.data[branch.process]
        kernel = by_process(recipe.kernel_base, branch.process) or Matern32(product=True)
        noise = None
        source, task = branch.process
        target = next(blend.target for blend in self.plan.blends if blend.task == task)
        if source != target and recipe.priors:
            noise = _quiet(observed)
            bases = {b.process: self.tree.parts[b.name] for b in self.tree.branches if not b.parent}
            fewer = _count(observed) <= _count(self.data[target, task])
            if (target, task) in bases and fewer and not isinstance(recipe.kernel_base, Mapping):
                kernel = linked(kernel, bases[target, task].gp.kernel)
        return MRGP(
            kernel=kernel,
            inducing=by_process(recipe.inducing, branch.process),
            method=recipe.method,
            priors=recipe.priors,
            quadrature=recipe.quadrature,
            noise=noise,
        )

    def _overlap(self, branch: Branch, observed: Observations) -> Int[np.ndarray, " r"]:
        """Return the values of a target in whose regions a branch's parent knows something."""
        support = _as_record(observed.dropna()).support
        rows = filled(len(support))
        given = as_arrays((*self.tree.of_any_size(self.states), support[rows]))
        known = _reliability(*given, str(branch.parent), effort=self.tree.effort())
        return np.flatnonzero(np.asarray(known)[: len(support)] >= OVERLAP)

    def _say_apart(self, branch: Branch) -> None:
        target, parent = self.data[branch.process], str(branch.parent)
        text = (
            f"{target.label} has no value where {parent} knows anything: the two do not overlap,"
            " and no map from the one to the other can be learned."
        )
        if all(len(blend.experts) == 1 for blend in self.plan.blends):
            raise ValueError(f"{text} Leave that source out of the chain.")
        warnings.warn(
            f"{text} {branch.name} is left out; the source can still be predicted.", stacklevel=8
        )

    def _layer_data(
        self, branch: Branch, observed: Observations
    ) -> tuple[Observations, Float[np.ndarray, ""]]:
        """Return what a layer is to explain, once for each path of its parent, and the slope.

        With an identity for a mean, the layer explains what the parent's values leave of the
        target's; values of another task are first brought to the target's spread.
        """
        record, identity = _as_record(observed), self.recipe.mean_deep == "identity"
        slope = np.asarray(1.0 if identity else 0.0)
        x, weights, y = self._paths(branch, record, slope)
        if identity and self.tree.task_of(str(branch.parent)) != branch.process[1]:
            slope = np.asarray(spread_of(observed) / (np.std(x[..., 0]) or 1.0))
            x, weights, y = self._paths(branch, record, slope)
        inputs = VALUE, *self.recipe.deep_inputs
        support = Nodes(x, weights, inputs=inputs, kind=observed.support.kind)
        source, task = branch.process
        return Observations(support, y, task=task, name=source), slope

    def _paths(
        self, branch: Branch, record: Record, slope: Float[np.ndarray, ""]
    ) -> tuple[np.ndarray, ...]:
        """Return nodes, their weights and values of a layer's data, path after path."""
        count, rows = len(record), filled(len(record))
        given = as_arrays((*self.tree.of_any_size(self.states), record.take(rows), slope))
        tree, states, filled_up, slope = given
        found = _paths_record(tree, states, branch, filled_up, slope, effort=self.tree.effort())
        atoms = found.support.atoms()
        every = (np.asarray(part) for part in (atoms.lower, atoms.weights, found.y))
        by_path = (part.reshape(-1, len(rows), *part.shape[1:])[:, :count] for part in every)
        return tuple(part.reshape(-1, *part.shape[2:]) for part in by_path)


def refused_joint(recipe: str, where: str) -> str:
    """Say why parts that are solved along time are not trained together with others."""
    return (
        f"{recipe}: the stage 'joint' trains the inducing inputs of all parts together, and"
        f' {where} has none; take schedule="cut", or method="exact" or "collapsed".'
    )


def refreshed(tree: Tree, states: States, data: Dataset) -> Tree:
    """Return a tree whose constants are those of new parameters and posteriors."""
    for branch in tree.branches:
        tree = with_constants(tree, states, branch, data[branch.process])
    return tree


def with_constants(tree: Tree, states: States, branch: Branch, observed: Observations) -> Tree:
    """Record what a base knows where it has data, or by how much a layer missed the target."""
    part = tree.parts[branch.name]
    if branch.parent is None:
        part = dataclasses.replace(part, floor=_floor(part, states[branch.name], observed))
    else:
        part = dataclasses.replace(part, excess=np.zeros(()))
        tree = dataclasses.replace(tree, parts=tree.parts | {branch.name: part})
        part = dataclasses.replace(part, excess=_excess(tree, states, branch, observed))
    return dataclasses.replace(tree, parts=tree.parts | {branch.name: part})


def _floor(part: Part, state: Conditioned, observed: Observations) -> Float[np.ndarray, ""]:
    """Return the variance that a base has where there are data."""
    seen = observed.dropna().support
    rows = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), FLOOR_ROWS)).astype(int))
    centres = np.asarray(seen[rows].collapse().atoms().lower)[filled(len(rows))]
    given = as_arrays((dataclasses.replace(part, rows=None), state.filled(), centres))
    effort = "least" if part.gp.solver.fills else "some"
    # The median, not the least: one place known well must not make all others look unknown.
    found, prior = (np.asarray(v)[: len(rows)] for v in _variances(*given, effort=effort))
    return np.asarray(max(float(np.median(found)), LEAST * float(np.median(prior))))


def _excess(
    tree: Tree, states: States, branch: Branch, observed: Observations
) -> Float[np.ndarray, ""]:
    """Return by how much a layer missed the target, beyond the target's own noise.

    A layer's noise has in it the target's, the spread of the paths and the layer's own variance,
    of which a prediction gives account anyway. What is left is uncertainty about the target.
    """
    part = tree.parts[branch.name]
    support = _as_record(observed.dropna()[part.rows]).support
    given = as_arrays((*tree.of_any_size(states), support[filled(len(support))]))
    found = _account(*given, branch.name, effort=tree.effort())
    told, total = (float(np.mean(np.asarray(part)[: len(support)])) for part in found)
    noise = part.gp.observation_noise(branch.process) - tree.observation_noise(branch.process)
    return np.asarray(max(0.0, noise - told) / total)


@Compiled
def _variances(
    part: Part, state: Conditioned, x: Float[Array, "b s d"]
) -> tuple[Float[Array, "b s"], Float[Array, "b s"]]:
    return part.at_nodes(state, x).variance, part.prior_variance(x)


@Compiled
def _reliability(tree: Tree, states: States, support: Support, name: str) -> Float[Array, " n"]:
    x, weights = nodes_of(support, tree.rule)
    size = jnp.abs(weights) / jnp.sum(jnp.abs(weights), 1, keepdims=True)
    return jnp.sum(size * tree.training_paths(states).reliability(name, x), 1)


@Compiled
def _paths_record(
    tree: Tree, states: States, branch: Branch, record: Record, slope: Array
) -> Record:
    return tree.layer_data(states, branch, record, slope)


@Compiled
def _account(tree: Tree, states: States, support: Support, name: str) -> tuple[Array, Array]:
    """Return the variance that a layer gives for each region, and the square of L 1."""
    means, variances = tree.training_paths(states).over_regions(name, support)
    _, weights = nodes_of(support, tree.rule)
    return jnp.mean(variances, 1) + jnp.var(means, 1), weights.sum(1) ** 2


def _as_record(observed: Observations) -> Record:
    support = observed.support.shift(np.zeros(observed.support.dimension))
    return Record(support, observed.y, None, np.ones(()), likelihood=observed.likelihood)


def layer_recipe(recipe: Any, branch: Branch, seen: Observations, target: Observations) -> MRGP:
    """Return the MR-GP of a layer over values of its parent, and the inputs beside them."""
    given = recipe.kernel_deep
    if isinstance(given, Mapping):
        given = given.get(str(branch.label))
    few = FEW if seen.support.dimension == 1 else MANY
    scarce = len(seen) < SCARCE * int(recipe.samples)
    spread = max(spread_of(seen), spread_of(target) if scarce else 0.0)
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


def _count(observed: Observations) -> int:
    return int(observed.observed.sum())


def _quiet(observed: Observations) -> dict[str, Any] | None:
    """Expect little noise of a source that is not the target.

    A base is to follow its source: what the source reports and is not so is for layers to find.
    """
    if observed.noise_variance is not None or _count(observed) < 2:
        return None
    spread = spread_of(observed) * typical_total(observed)
    usual = COARSE_NOISE_SHARE * spread**2
    prior = LogNormal(usual, COARSE_NOISE_LOG_SD)
    floor = COARSE_NOISE_FLOOR * spread**2
    return {observed.name: positive(usual, prior, floor=floor, scale=usual)}
