"""The composite marginal likelihood: shared parameters, each source integrated alone (theory 4.1).

Under the product likelihood, sources that share errors agree too well, and noises go to zero. Each
source on its own knows nothing of the others' errors.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._compiled import effort_of
from mrgp._types import to_numpy
from mrgp.data import Records
from mrgp.inference.coordinate import Profiled, Relative, blocks_of, settle, with_settled_q
from mrgp.inference.lbfgs import LBFGS, maximise
from mrgp.inference.loop import Optimum
from mrgp.inference.objectives import Objective
from mrgp.inference.problem import Problem
from mrgp.inference.progress import Progress
from mrgp.inference.stages import USUAL, forerunner
from mrgp.models import as_arrays, begin
from mrgp.parameters import Parameter, log_prior, partition

TITLE = "each source alone"


class Separate(eqx.Module):
    """A model under the sum of its sources' own log evidences."""

    model: Any
    plans: tuple[Any, ...] = ()

    @property
    def variational(self) -> None:
        """Each source has the best q of its own."""
        return None

    @property
    def linear(self) -> Any:
        """The linear model of all sources."""
        return self.model.linear

    @property
    def composite(self) -> Any:
        """The model of all sources, of which each is taken alone."""
        return self.model

    def log_evidence(self, records: Records) -> Float[Array, ""]:
        """Return the sum of the sources' log evidences, or of bounds on them."""
        alone = [self.model.alone(i) for i in range(len(records))]
        if self.plans:
            alone = [m.with_plan(plan) for m, plan in zip(alone, self.plans, strict=True)]
        own = [m.log_evidence((record,)) for m, record in zip(alone, records, strict=True)]
        return jnp.sum(jnp.stack(own))

    def plan_of(self, records: Records) -> Any:
        """Return the plan of each source alone."""
        return tuple(self.model.alone(i).plan_of((r,)) for i, r in enumerate(records))

    def with_plan(self, plan: Any) -> "Separate":
        """Return the model for records of these plans."""
        return dataclasses.replace(self, plans=plan)


def composite_optimum(problem: Problem, progress: Progress) -> Optimum:
    """Fit the parameters that all sources share, each source integrated on its own.

    Biases, and the constant weights between tasks, which no source shows alone, are then fitted to
    all together, the rest held. The model returned has these parameters; a network has the
    posterior of all sources together.
    """
    if problem.recipe.fitted == "blocks":
        return _network_optimum(problem, progress)
    built = problem.build()
    if built.variational is not None:
        # With the best q(u) of each source, its bound is the collapsed one.
        built = built.variational.with_q(None)
    if built.approximate is not None:
        raise ValueError(_of_other_likelihoods(problem))
    if built.composite is None:
        raise ValueError(
            f"{type(problem.recipe).__name__} cannot take its sources one by one, and so has no"
            " rule for composite weights; give weights={source: number}, or none."
        )
    return _linear_optimum(problem, built.composite, progress)


def _of_other_likelihoods(problem: Problem) -> str:
    """Say why values that are not Gaussian have no rule for composite weights."""
    odd = next((o for o in problem.data if not o.conjugate), None)
    if odd is None:
        what = f"{type(problem.recipe).__name__}: values of a field behind a link"
    elif odd.likelihood.conjugate:
        what = f"{odd.label}: values at or beyond their limit"
    else:
        what = f"{odd.label}: values of the likelihood {odd.likelihood.name!r}"
    return (
        f"{what} have no rule for composite weights, which compares Gaussian scores of the"
        " latent functions; give weights={source: number}, or none."
    )


def _linear_optimum(problem: Problem, built: Any, progress: Progress) -> Optimum:
    target = Objective.of(Separate(built), problem.records)
    found = maximise(target, problem.log_unit, LBFGS(), problem.key, progress, TITLE)
    found = dataclasses.replace(found, trained=None, model=found.model.model)
    if found.status.over or not built.coupling:
        return found
    return _coupled(problem, found, built, progress)


def _coupled(problem: Problem, found: Optimum, built: Any, progress: Progress) -> Optimum:
    """Fit to all sources together what none of them shows alone: biases, and W between tasks."""

    def part(model: Any) -> Any:
        return model.coupling

    model = to_numpy(found.model)
    held = jax.tree.map(_held, model, is_leaf=lambda x: isinstance(x, Parameter))
    target = problem.objective(eqx.tree_at(part, held, part(built)))
    joined = maximise(target, problem.log_unit, LBFGS(), problem.key, progress, "couplings")
    status = found.status if joined.status.code == "converged" else joined.status
    moved = eqx.tree_at(part, model, part(to_numpy(joined.model)))
    return dataclasses.replace(found, model=moved, status=status)


def _held(leaf: Any) -> Any:
    return dataclasses.replace(leaf, trainable=False) if isinstance(leaf, Parameter) else leaf


class _Networks(eqx.Module):
    """One network's parameters, and the q of its weights under each source alone."""

    network: Any
    weights: Any
    linear: ClassVar[None] = None


class _OfSource(Objective):
    """The bound of one source alone."""

    process: int = eqx.field(static=True)

    def model(self, trained: Any) -> Any:
        """Return the network as this source sees it."""
        both = eqx.combine(trained, self.frozen)
        q = None if both.weights is None else both.weights[self.process]
        return both.network.alone(self.process).with_q(q)


class _Profiles:
    """The sum of the sources' best bounds, as a loss with its slope."""

    def __init__(self, objective: Objective, parts: Sequence[Profiled]):
        self.objective, self.parts = objective, parts
        self.size = float(objective.count)
        for part in parts:
            part.size = self.size

    def __call__(self, trained: Any) -> tuple[Array, Any]:
        """Return loss and slope, with the prior of the parameters counted once."""
        found = [part(trained) for part in self.parts]
        prior = _prior(self.objective, trained, jnp.asarray((len(self.parts) - 1) / self.size))
        values, slopes = zip(*found, prior, strict=True)
        total = jax.tree.map(lambda *leaves: jnp.sum(jnp.stack(leaves), 0), *slopes)
        return jnp.sum(jnp.stack(values)), total

    def accept(self, trained: Any) -> None:
        """Go on from the q of these parameters."""
        for part in self.parts:
            part.accept(trained)

    def memory(self) -> list[np.ndarray]:
        """Return what the parts have in their memory."""
        return [leaf for part in self.parts for leaf in part.memory()]

    def remember(self, memory: list[np.ndarray]) -> None:
        """Take up the memory of another loss of the same objective."""
        for part in self.parts:
            count = len(part.memory())
            part.remember(memory[:count])
            memory = memory[count:]

    def model(self, trained: Any) -> Any:
        """Return the network's parameters."""
        return self.objective.model(trained).network


@eqx.filter_jit
def _prior(objective: Objective, trained: Any, share: Array) -> tuple[Array, Any]:
    def scaled(trained: Any) -> Array:
        return share * log_prior(objective.model(trained).network)

    return eqx.filter_value_and_grad(scaled)(trained)


def _network_optimum(problem: Problem, progress: Progress) -> Optimum:
    network: Any = problem.build()
    if network.components > 1:
        raise ValueError(
            'Composite weights and hyperparameters="keep" take networks of one component; this one'
            f" has {network.components}. Find the weights with components=1, and give them as"
            " weights=."
        )
    linear = forerunner(problem)
    start = _linear_optimum(linear, linear.build().composite, progress)
    if start.status.over:
        return dataclasses.replace(start, model=network)
    network = begin(network, to_numpy(start.model))
    own = blocks_of(as_arrays(network.q), effort="least")
    records = as_arrays(problem.records)
    plain = _Networks(network.with_q(None), None)
    alone = [_of_source(plain, records, i) for i in range(len(records))]
    starts = [
        settle(target.filled(), _trained(plain), own, effort=effort_of(target.count))[0]
        for target in alone
    ]
    weights = tuple(q.map(lambda block: Relative.to(block.moments)).w for q in starts)
    whole = _Networks(network.with_q(None), weights)
    objective = Objective.of(whole, records)
    parts = [Profiled(_of_source(whole, records, i), q.f) for i, q in enumerate(starts)]
    loss = _Profiles(objective, parts)
    found = maximise(objective, problem.log_unit, USUAL, 0, progress, TITLE, loss)
    together = to_numpy(found.model).with_q(network.q)
    return dataclasses.replace(found, trained=None, model=with_settled_q(together, records))


def _trained(whole: _Networks) -> Any:
    return as_arrays(partition(whole)[0])


def _of_source(whole: _Networks, records: Records, process: int) -> _OfSource:
    trained, frozen = as_arrays(partition(whole))
    return _OfSource(trained, frozen, (records[process],), process)
