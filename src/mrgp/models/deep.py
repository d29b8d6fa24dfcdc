"""The recipes of deep models: the tree of MR-DGP, and the chain of MR-CASCADE (theory 5 and 6)."""

import abc
import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from mrgp._types import float64
from mrgp.data import Dataset, Frame, Scaling
from mrgp.gp import Inducing
from mrgp.models.approximate import refuse_likelihoods
from mrgp.models.arguments import check_choices, check_kernels, check_rule, check_whole
from mrgp.models.conditioning import conditioned
from mrgp.models.contract import Fitted, PlainRecipe, Process, Sketch, Weights
from mrgp.models.growing import Growth, Made, Plan, refused_joint
from mrgp.models.mixing import Mixing
from mrgp.models.mrgp import Method
from mrgp.models.parts import Blend, Branch
from mrgp.models.tree import Tree, Variance
from mrgp.supports import DEFAULT_RULE, Geometry, Support

MeanDeep = Literal["identity", "linear"]
Stage = Literal["bases", "experts", "joint"]
SCHEDULES = {"cut": ("bases", "experts"), "joint": ("bases", "experts", "joint")}
LAYERED = (
    "the layers explain what a line of the layer below leaves of the target's values, which is"
    ' Gaussian. Use MRGP, with bias="ratio" where sources report multiples of one positive field,'
    ' or bias="affine" where the field has either sign'
)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class _Deep(PlainRecipe, abc.ABC):
    """What the recipes of trees have in common."""

    deep_inputs: Any = ()
    kernel_base: Any = None
    kernel_deep: Any = None
    schedule: Any = "cut"
    samples: Any = 20
    inducing: Any = None
    inducing_deep: Any = None
    method: str = "auto"
    mean_deep: str = "identity"
    priors: bool = True
    quadrature: Any = DEFAULT_RULE

    @property
    def fitted(self) -> Fitted:
        """Its parts are fitted one after another."""
        return "parts"

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of a fit."""
        if isinstance(self.schedule, str):
            return SCHEDULES[self.schedule]
        return tuple(self.schedule)

    def refuses(self, weights: Weights) -> str | None:
        """Take weights that are given, and find none."""
        if not isinstance(weights, str):
            return None
        return (
            f"{type(self).__name__} has a GP for every source, so that no evidence is counted"
            " twice, and no rule for composite weights; give weights={source: number}, or none."
        )

    @property
    @abc.abstractmethod
    def rule(self) -> str:
        """How experts are mixed, in words."""

    def sketch(self, data: Dataset) -> Sketch:
        """Return the branches of the tree."""
        return Sketch(
            "tree", plan=self.plan(data), beside=tuple(self.deep_inputs), mixing=self.rule
        )

    @abc.abstractmethod
    def plan(self, data: Dataset) -> Plan:
        """Return which GPs there are, and what each takes and explains."""

    def frame(self, data: Dataset) -> Frame:
        """Leave inputs and values as they are: each part centres its own."""
        refuse_likelihoods(data, type(self).__name__, LAYERED)
        return Frame.of(data)._replace(scaling=Scaling.plain(data))

    @float64
    def build(self, data: Dataset, key: Any = 0, frame: Frame | None = None) -> Tree:
        """Make the tree with untrained parts, each in a frame of its own."""
        plan = self.plan(data)
        growth = Growth.begin(self, plan, data, key=key)
        for branch in plan.branches:
            wanted = growth.wanted(branch)
            if wanted is None:
                continue
            own = Frame.of(wanted.data)
            gp = wanted.recipe.build(wanted.data, key, own)
            records = own.scaling.records(wanted.data, {branch.process: wanted.weight})
            state = conditioned(gp, records)
            growth = growth.joined(wanted, Made(gp, state, own.scaling))
        return growth.tree


@dataclasses.dataclass(frozen=True, repr=False)
class MRDGP(_Deep):
    """The multi-resolution deep GP: experts learn how each source maps to the target, and mix.

    Every source has a base GP of its own, and every source but the target a deep GP that maps its
    base to the `target` (a source, or a pair (source, task); default: the source of the finest
    support). `order` lists sources by trust, target first, or maps tasks to such lists; by default
    finer supports come first. Other tasks are mixed in the same way, and their mixtures mapped to
    the target. `deep_inputs` names inputs over which these maps may change.

    `kernel_base` is a kernel, or one for each source, and so is `inducing`; `kernel_deep` sees the
    inputs "value" and `deep_inputs`, and may be given for each source, or other task, too. Maps
    vary about the identity, or with `mean_deep="linear"` about a line. `mixing` weighs experts by
    what their own predictions know ("precision"), by what their bases know, in `order`
    ("reliability"), equally ("average"), takes the target's base alone ("base"), or is a function
    of the inputs [n, d] that returns weights [n, experts]; `variance="independent"` adds up the
    experts' errors as if they were independent. `schedule` is "cut" (bases first, then experts),
    "joint" (then all together), or a list of the stages "bases", "experts" and "joint". `samples`
    is the number of paths drawn through the tree.

    >>> MRDGP(target="sensors").mixing
    'precision'
    """

    target: Any = None
    order: Any = None
    mixing: Any = "precision"
    variance: str = "mixture"

    def __post_init__(self) -> None:
        lists = self.order.values() if isinstance(self.order, Mapping) else [self.order]
        for given in lists if self.order is not None else ():
            if isinstance(given, str) or not isinstance(given, Sequence) or not given:
                raise TypeError(
                    "MRDGP: order= lists sources, target first, or maps tasks to such lists; got"
                    f" {self.order!r}."
                )
        if not isinstance(self.target, str | tuple | list | None):
            raise TypeError(
                f"MRDGP: target= is a source, or a pair (source, task); got {self.target!r}."
            )
        if not callable(self.mixing):
            check_choices(self, " or a function of the inputs", mixing=Mixing)
        check_choices(self, variance=Variance)
        _check_common(self)

    @property
    def rule(self) -> str:
        """How experts are mixed, in words."""
        return "a function of x" if callable(self.mixing) else str(self.mixing)

    def plan(self, data: Dataset) -> Plan:
        """Return the tree for a dataset: which GPs there are, and what each takes and explains."""
        source, task = self._target(data)
        names = [t for t in data.tasks if t != task] + [task]
        several = len(names) > 1
        branches: list[Branch] = []
        blends: list[Blend] = []
        for name in names:
            ordered = self._order(data, name, source if name == task else None)
            bases = [Branch(_called("base", s, name, several), (s, name)) for s in ordered]
            target = bases[0]
            layers = [
                Branch(_called("expert", s, name, several), target.process, base.name, s)
                for s, base in zip(ordered[1:], bases[1:], strict=True)
            ]
            for other in blends if name == task else ():
                label = f"{other.task} (task)" if other.task in ordered else other.task
                called = _called("expert", label, name, several)
                layers.append(Branch(called, target.process, other.name, label))
            branches += [*bases, *layers]
            experts = [(ordered[0], target.name), *((b.label, b.name) for b in layers)]
            blends.append(Blend(f"mixture[{name}]", name, ordered[0], tuple(experts)))
        _check_keys(self, data, [b.label for b in branches if b.parent is not None])
        return Plan(tuple(branches), tuple(blends))

    def _target(self, data: Dataset) -> Process:
        if self.target is None and self.order is None:
            task = data.tasks[0]
            return by_size(data, task)[0], task
        target = self.target
        if target is None:
            # The order has the target first; of several tasks, the first is the target's.
            mapped = isinstance(self.order, Mapping)
            task = next(iter(self.order)) if mapped else None
            target = (self.order[task][0], task) if mapped else self.order[0]
        return _process(data, target, "MRDGP: target=")

    def _order(self, data: Dataset, task: str, target: str | None) -> list[str]:
        """Return the sources of a task, those trusted most first."""
        there = by_size(data, task)
        given = self.order
        if isinstance(given, Mapping):
            unknown = [name for name in given if name not in data.tasks]
            if unknown:
                raise ValueError(
                    f"MRDGP: order= has {unknown[0]!r}, which is no task; they are {data.tasks}."
                )
            given = given.get(task)
        elif given is not None and target is None:
            given = None
        if given is None:
            return there if target is None else [target, *(s for s in there if s != target)]
        given = list(given)
        if sorted(given) != sorted(there):
            raise ValueError(
                f"MRDGP: order= must list each source of task {task!r} once: {sorted(there)}; got"
                f" {given}."
            )
        if target is not None and given[0] != target:
            raise ValueError(
                f"MRDGP: order= starts with the target, {target!r}; got {given}. Move it to the"
                " front."
            )
        return given


@dataclasses.dataclass(frozen=True, repr=False)
class Cascade(_Deep):
    """The baseline MR-CASCADE: a chain of deep GPs from the coarsest source to the target.

    `chain` lists sources, or pairs (source, task), coarsest first and target last. The first has a
    base GP, and each of the others a deep GP over the values of the one before; only the last
    predicts the target. Other arguments are as in `MRDGP`.

    >>> Cascade(chain=["satellite", "sensors"]).samples
    20
    """

    chain: Any = ()

    def __post_init__(self) -> None:
        if isinstance(self.chain, str) or not isinstance(self.chain, Sequence) or not self.chain:
            raise TypeError(
                "Cascade: chain= lists sources, coarsest first and target last, as ['satellite',"
                f" 'sensors']; got {self.chain!r}."
            )
        _check_common(self)

    @property
    def mixing(self) -> str:
        """The last branch alone predicts."""
        return "average"

    @property
    def rule(self) -> str:
        """There is nothing to mix."""
        return self.mixing

    @property
    def variance(self) -> str:
        """How experts are joined: there is one."""
        return "mixture"

    def view(self, data: Dataset) -> Dataset:
        """Return the sources of the chain, in its order, and warn of those it leaves out."""
        chain = [_process(data, name, "Cascade: ") for name in self.chain]
        if len(set(chain)) != len(chain):
            raise ValueError(f"Cascade: chain= has a source twice: {list(self.chain)}.")
        others = [process for process in data.processes if process not in chain]
        if others:
            warnings.warn(f"Cascade: {others} are not in the chain, and left out.", stacklevel=7)
        return Dataset([data[process] for process in chain])

    def plan(self, data: Dataset) -> Plan:
        """Return the chain for a dataset."""
        chain = [_process(data, name, "Cascade: ") for name in self.chain]
        several = len({task for _, task in chain}) > 1
        branches = [Branch(_called("base", *chain[0], several), chain[0])]
        for process in chain[1:]:
            before = branches[-1]
            name = _called("expert", *process, several)
            branches.append(Branch(name, process, before.name, before.process[0]))
        # The last branch of a task alone speaks for it.
        last = {branch.process[1]: branch for branch in branches}
        blends = [
            Blend(f"mixture[{task}]", task, branch.process[0], ((branch.process[0], branch.name),))
            for task, branch in last.items()
        ]
        _check_keys(self, data, [branch.label for branch in branches[1:]])
        return Plan(tuple(branches), tuple(blends))


def _called(kind: str, name: str, task: str, several: bool) -> str:
    return f"{kind}[{name}, {task}]" if several else f"{kind}[{name}]"


def _process(data: Dataset, named: Any, where: str) -> Process:
    """Return the process that a source, or a pair (source, task), names."""
    pair = (named,) if isinstance(named, str) else tuple(named)
    found = [p for p in data.processes if pair in (p, p[:1])]
    if len(found) != 1:
        what = "has several tasks; give a pair (source, task)" if found else "is no source"
        raise ValueError(f"{where}{named!r} {what}. The processes are {data.processes}.")
    return found[0]


def by_size(data: Dataset, task: str) -> list[str]:
    """Return the sources of a task, those of the finest support first."""
    extent = Geometry.of(data.supports).extent
    sources = [o for o in data if o.task == task]
    return [o.name for o in sorted(sources, key=lambda o: _size(o.support, extent))]


def _size(support: Support, extent: np.ndarray) -> float:
    """Return the typical width of regions, relative to the domain, over all inputs."""
    lower, upper = (np.asarray(side) for side in support.bounds)
    return float(np.sum(np.median(upper - lower, 0) / extent))


def _check_common(recipe: Any) -> None:
    """Check what both recipes have, and make plain values of it."""
    name = type(recipe).__name__
    check_choices(recipe, method=Method, mean_deep=MeanDeep)
    beside = () if recipe.deep_inputs is None else recipe.deep_inputs
    beside = (beside,) if isinstance(beside, str) else tuple(beside)
    object.__setattr__(recipe, "deep_inputs", beside)
    if "value" in beside:
        raise ValueError(
            f'{name}: deep_inputs= cannot have an input named "value", which is the name of a'
            " source's own value. Rename the input."
        )
    check_whole(recipe, "samples", " of paths")
    for argument in ("kernel_base", "kernel_deep"):
        check_kernels(recipe, argument, ", or a mapping from sources to kernels")
    given = recipe.inducing
    for inducing in given.values() if isinstance(given, Mapping) else (given,):
        Inducing.parse(inducing)
    Inducing.parse(recipe.inducing_deep)
    check_rule(recipe)
    _check_schedule(name, recipe.schedule)
    if recipe.method == "markov" and "joint" in recipe.stages:
        raise ValueError(refused_joint(name, 'method="markov"'))


def _check_schedule(name: str, schedule: Any) -> None:
    if isinstance(schedule, str):
        if schedule not in SCHEDULES:
            raise ValueError(
                f"{name}: schedule= is one of {tuple(SCHEDULES)}, or a list of the stages"
                f" {get_args(Stage)}; got {schedule!r}."
            )
        return
    stages = tuple(schedule) if isinstance(schedule, Sequence) else (schedule,)
    if stages[:2] != ("bases", "experts") or any(s != "joint" for s in stages[2:]):
        raise ValueError(
            f"{name}: a schedule begins with 'bases' and 'experts', and may go on with 'joint', as"
            f" often as you like; got {list(stages)}."
        )


def _check_keys(recipe: Any, data: Dataset, labels: list[str]) -> None:
    """Refuse kernels for what is not there."""
    known: dict[str, Any] = {
        "kernel_base": {*data.processes, *data.sources},
        "inducing": {*data.processes, *data.sources},
        "kernel_deep": set(labels),
    }
    for argument, names in known.items():
        given = getattr(recipe, argument)
        wrong = [key for key in given if key not in names] if isinstance(given, Mapping) else []
        if wrong:
            raise ValueError(
                f"{type(recipe).__name__}: {argument}= has {wrong[0]!r}, which is none of"
                f" {sorted(names, key=str)}."
            )
