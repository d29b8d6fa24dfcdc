"""A tree of GPs: bases, layers over their values, and the mixture of a task (theory 5)."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._compiled import Compiled, Effort, effort_of
from mrgp._types import AnyArray
from mrgp.data import Record, Records, Scaling
from mrgp.gp import nodes_of
from mrgp.models.answers import Components, Question, as_arrays, check_joint, columns_of, in_chunks
from mrgp.models.contract import LearnedMap, PlainModel, Process
from mrgp.models.parts import Blend, Branch, LayerMap, Part, States, layer_record
from mrgp.models.paths import Paths
from mrgp.parameters import Parameter
from mrgp.supports import Rule, Support

Variance = Literal["mixture", "independent"]
LARGEST_PATHS = 10**8


class Tree(eqx.Module, PlainModel):
    """Base GPs of every process, layers that take their values, and mixtures of experts.

    `branches` are in the order in which they can be computed. The model works in the user's own
    coordinates, and its parts in theirs.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0], name="sites")
    >>> [branch.name for branch in mrgp.MRDGP().build(mrgp.Dataset([seen])).branches]
    ['base[sites]']
    """

    parts: dict[str, Part]
    branches: tuple[Branch, ...] = eqx.field(static=True)
    blends: tuple[Blend, ...] = eqx.field(static=True)
    processes: tuple[Process, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    beside: tuple[int, ...] = eqx.field(static=True)
    mixing: str | Callable[..., Any] = eqx.field(static=True)
    combine: Variance = eqx.field(static=True)
    samples: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)
    rule: Rule = eqx.field(static=True)

    @property
    def maps(self) -> Mapping[Any, LearnedMap]:
        """The layers by what they map from: a source or task, or (source, task)."""
        found: dict[Any, LearnedMap] = {}
        names = tuple(self.inputs[d] for d in self.beside)
        for branch in (b for b in self.branches if b.parent is not None):
            part, task = self.parts[branch.name], self.task_of(str(branch.parent))
            made = LayerMap(part, branch.name, branch.label, *branch.process, task, names)
            # The last of a name is the target's; those of other tasks go by (source, task).
            found[branch.label, branch.process[1]] = found[branch.label] = made
        return found

    def effort(self, rows: int = 0) -> Effort:
        """Return the effort that code which runs once for so many rows is worth.

        What is solved along time passes over all its data.
        """
        along = any(not part.gp.solver.fills for part in self.parts.values())
        return "some" if along else effort_of(rows, once=True)

    @property
    def key(self) -> Array:
        """The key of the paths with which the layers are trained."""
        with jax.ensure_compile_time_eval():
            return jax.random.key(self.seed)

    @property
    def ancestors(self) -> frozenset[str]:
        """The branches whose values a layer takes, directly or as experts of a mixture."""
        parents = {branch.parent for branch in self.branches}
        mixed = {n for b in self.blends if b.name in parents for _, n in b.experts}
        return frozenset(b.name for b in self.branches if b.name in parents | mixed)

    def log_evidence(self, records: Records) -> Float[Array, ""]:
        """Return the bound: those of the bases, and of the layers given their parents' paths."""
        return self._climb(records)[0]

    def condition(self, records: Records) -> States:
        """Return the posterior of every part."""
        return self._climb(records, everywhere=True)[1]

    def _climb(self, records: Records, everywhere: bool = False) -> tuple[Float[Array, ""], States]:
        total, states = jnp.zeros(()), {}
        for branch in self.branches:
            part = self.parts[branch.name]
            record = records[self.processes.index(branch.process)]
            record = self.record_of(states, branch, record)
            if everywhere or branch.name in self.ancestors:
                states[branch.name] = part.gp.condition((record,))
            if not everywhere:
                total += part.gp.log_evidence((record,))
        return total, states

    def record_of(self, states: States, branch: Branch, record: Record) -> Record:
        """Return what a branch is to explain, in its own coordinates."""
        part = self.parts[branch.name]
        if branch.parent is None:
            return part.record(record)
        rows: Any = part.rows
        seen = dataclasses.replace(record.take(rows), shapes=None, lattice=None)
        return part.record(self.layer_data(states, branch, seen, part.slope))

    def layer_data(
        self, states: States, branch: Branch, record: Record, slope: Float[AnyArray, ""]
    ) -> Record:
        """Return what a layer is to explain of a target, in the user's coordinates."""
        x, weights = nodes_of(record.support, self.rule)
        h = self.training_paths(states).draws(str(branch.parent), x)
        return layer_record(slope, h, record, x[..., np.array(self.beside, int)], weights)

    def training_paths(self, states: States) -> Paths:
        """Return the paths with which layers are trained."""
        return Paths(self, states, self.key, self.samples)

    def of_any_size(self, states: States) -> tuple["Tree", States]:
        """Return tree and posteriors for code that is compiled once for many sizes of data."""
        parts = {name: dataclasses.replace(p, rows=None) for name, p in self.parts.items()}
        held = {name: state.filled() for name, state in states.items()}
        return dataclasses.replace(self, parts=parts), held

    def predict(self, state: States, support: Support, asked: Question) -> Components:
        """Return a mixture over experts and paths through the tree, with experts beside it."""
        count = self.samples if asked.samples is None else max(int(asked.samples), 1)
        tree, held = as_arrays(self.of_any_size(state))

        def answer(part: Support) -> Any:
            given = as_arrays(self.asked(part, asked.task, asked.source))
            paths, effort = (tree, held, asked.key, count), self.effort(len(part))
            return _answer(paths, part, asked.task, asked.source, asked.joint, given, effort=effort)

        if not asked.joint:
            found = in_chunks(answer, support, columns_of(state))
            # In order of trust; trees of arrays have their keys sorted.
            labels = [name for name, _ in self.blend(asked.task).experts if name in found.experts]
            experts = {name: found.experts[name] for name in labels}
            shares = {name: found.shares[name] for name in labels}
            return dataclasses.replace(found, experts=experts, shares=shares)
        check_joint(len(support))
        nodes = len(support) * support.quadrature(self.rule).nodes_per_region
        if nodes**2 * count > LARGEST_PATHS:
            raise ValueError(
                f"predict: joint=True of a deep model keeps {count} matrices of {nodes} x {nodes}"
                " nodes, which is too much. Predict fewer regions at a time, or with fewer samples."
            )
        return Components.gaussian(*answer(as_arrays(support)))

    def asked(
        self, support: Support, task: str, source: str | None
    ) -> Float[np.ndarray, "n s a"] | None:
        """Ask a function of the user's for the weights of the target's experts at nodes."""
        blend = self.blend(task)
        mixed = self.speaker(task, source) is None and blend == self.blends[-1]
        if not callable(self.mixing) or not mixed:
            return None
        x, _ = nodes_of(support, self.rule)
        places = np.asarray(x, np.float64).reshape(-1, x.shape[2])
        given = np.asarray(self.mixing(places), np.float64)
        count = len(blend.experts)
        if given.shape != (len(places), count):
            labels = [label for label, _ in blend.experts]
            raise ValueError(
                f"mixing: the function must return a weight for each of the experts {labels}, shape"
                f" {(len(places), count)}; got {given.shape}."
            )
        if not np.all(np.isfinite(given) & (given >= 0)) or not np.all(given.sum(1) > 0):
            raise ValueError("mixing: weights must be finite, not negative, and not all zero.")
        return (given / given.sum(1, keepdims=True)).reshape(*x.shape[:2], count)

    def blend(self, task: str) -> Blend:
        """Return the mixture of a task."""
        return next(b for b in self.blends if b.task == task)

    def blend_named(self, name: str) -> Blend | None:
        """Return the mixture of a name, if it is one."""
        return next((b for b in self.blends if b.name == name), None)

    def branch(self, name: str) -> Branch:
        """Return the branch of a name."""
        return next(b for b in self.branches if b.name == name)

    def task_of(self, name: str) -> str:
        """Return the task of a branch, or of a mixture."""
        blend = self.blend_named(name)
        return self.branch(name).process[1] if blend is None else blend.task

    def speaker(self, task: str, source: str | None) -> Branch | None:
        """Return the branch that speaks for a source, or None for the mixture of a task."""
        if source is None or source == self.blend(task).target:
            return None
        return [b for b in self.branches if b.process == (source, task)][-1]

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation: that of the process's first branch."""
        branch = next(b for b in self.branches if b.process == process)
        return self.parts[branch.name].gp.observation_noise(process)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name, those of each branch behind its own."""
        return {
            f"{branch.name}.{_plain(name)}": parameter
            for branch in self.branches
            for name, parameter in self.parts[branch.name].gp.named().items()
        }

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        return {
            f"{branch.name}.{_plain(name)}": value
            for branch in self.branches
            for name, value in self.parts[branch.name].report().items()
        }

    def account(self, state: States) -> str:
        """Say which experts there are, and what they were trained on."""
        layers = [b for b in self.branches if b.parent is not None]
        counts = [len(np.asarray(self.parts[n.name].rows)) for n in layers]
        each = [f"{n.name} on {_counted(c, 'value')}" for n, c in zip(layers, counts, strict=True)]
        trained = f": {', '.join(each)}" if each else ""
        bases = len(self.branches) - len(layers)
        exact = any(part.gp.solver.keeps_data for part in self.parts.values())
        kept = "; exact bases keep their training data in the fit, and its file" if exact else ""
        return (
            f"tree of {_counted(bases, 'base GP')} and {_counted(len(layers), 'layer')}{trained};"
            f" {self.samples} paths{kept}"
        )


@Compiled
def _answer(
    paths: Any, support: Support, task: str, source: str | None, joint: bool, given: Any
) -> Any:
    drawn = Paths(*paths)
    asked = drawn.joint if joint else drawn.components
    return asked(support, task, source, given)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _plain(name: str) -> str:
    """Leave the source out of a part's parameter: the part's name has it."""
    return name.split("[")[0] if name.startswith(("noise_variance", "offset", "ratio")) else name
