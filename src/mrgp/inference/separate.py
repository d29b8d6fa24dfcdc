"""The composite marginal likelihood: shared parameters, each source integrated alone (theory 4.1).

Under the product likelihood, sources that share errors agree too well, and noises go to zero. Each
source on its own knows nothing of the others' errors.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mrgp._types import to_numpy
from mrgp.data import Dataset, Record, Scaling, as_seed
from mrgp.inference.coordinate import Profiled, Relative, blocks_of, settle
from mrgp.inference.objectives import Objective, as_arrays, build_objective, replace_q
from mrgp.inference.optimisers import LBFGS, Optimum, maximise
from mrgp.inference.progress import as_progress
from mrgp.inference.stages import log_unit, sample_of
from mrgp.models import Coregionalised, Network, begin, trained_q
from mrgp.parameters import Parameter, log_prior, partition

TITLE = "each source alone"


class Separate(eqx.Module):
    """A model under the sum of its sources' own log evidences."""

    model: Any

    def log_evidence(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the sum of the sources' log evidences, or of bounds on them."""
        own = [self.model.alone(i).log_evidence((r,)) for i, r in enumerate(records)]
        return jnp.sum(jnp.stack(own))


def composite_optimum(recipe: Any, data: Dataset, key: Any, progress: Any = None) -> Optimum:
    """Fit the parameters that all sources share, each source integrated on its own.

    Biases, and the constant weights between tasks, which no source shows alone, are then fitted to
    all together, the rest held. `data` are as the recipe views them. The model returned has these
    parameters; a network has the posterior of all sources together.
    """
    built = recipe.build(data, key)
    if isinstance(built, Network):
        if built.components > 1:
            raise ValueError(
                'Composite weights and hyperparameters="keep" take networks of one component; this'
                f" one has {built.components}. Find the weights with components=1, and give them as"
                " weights=."
            )
        return _network_optimum(recipe, built, data, key, progress)
    if getattr(built, "q", None) is not None:
        # With the best q(u) of each source, its bound is the collapsed one.
        built = replace_q(built, None)
    return _linear_optimum(built, data, Scaling.of(data), key, progress)


def _linear_optimum(
    built: Any, data: Dataset, scaling: Scaling, key: Any, progress: Any
) -> Optimum:
    target = build_objective(Separate(built), data, scaling, None)
    unit = log_unit(scaling, data)
    found = maximise(target, unit, LBFGS(), as_seed(key), as_progress(progress), TITLE)
    found = dataclasses.replace(found, trained=None, model=found.model.model)
    if found.status.code in ("failed", "interrupted"):
        return found
    return _coupled(found, built, data, scaling, key, progress)


def _coupled(
    found: Optimum, built: Any, data: Dataset, scaling: Scaling, key: Any, progress: Any
) -> Optimum:
    """Fit to all sources together what none of them shows alone: biases, and W between tasks."""
    model = to_numpy(found.model)
    if isinstance(model, Coregionalised):
        part = (lambda m: m.weights) if len(data.tasks) > 1 else None
    else:
        part = (lambda m: (m.offset, m.ratio)) if model.offset else None
    if part is None:
        return found
    held = jax.tree.map(_held, model, is_leaf=lambda x: isinstance(x, Parameter))
    target = build_objective(eqx.tree_at(part, held, part(built)), data, scaling, None)
    unit = log_unit(scaling, data)
    joined = maximise(target, unit, LBFGS(), as_seed(key), as_progress(progress), "couplings")
    status = found.status if joined.status.code == "converged" else joined.status
    moved = eqx.tree_at(part, model, part(to_numpy(joined.model)))
    return dataclasses.replace(found, model=moved, status=status)


def _held(leaf: Any) -> Any:
    return dataclasses.replace(leaf, trainable=False) if isinstance(leaf, Parameter) else leaf


class _Networks(eqx.Module):
    """One network's parameters, and the q of its weights under each source alone."""

    network: Any
    weights: Any


class _OfSource(Objective):
    """The bound of one source alone."""

    process: int = eqx.field(static=True)

    def model(self, trained: Any) -> Any:
        """Return the network as this source sees it."""
        both = eqx.combine(trained, self.frozen)
        q = None if both.weights is None else both.weights[self.process]
        return replace_q(both.network.alone(self.process), q)


class _Profiles:
    """The sum of the sources' best bounds, as a loss with its slope."""

    def __init__(self, objective: Objective, parts: Sequence[Profiled]):
        self.objective, self.parts = objective, parts
        self.size = float(sum(len(r) for r in objective.records))
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

    def model(self, trained: Any) -> Any:
        """Return the network's parameters."""
        return self.objective.model(trained).network


@eqx.filter_jit
def _prior(objective: Objective, trained: Any, share: Array) -> tuple[Array, Any]:
    def scaled(trained: Any) -> Array:
        return share * log_prior(objective.model(trained).network)

    return eqx.filter_value_and_grad(scaled)(trained)


def _network_optimum(
    recipe: Any, network: Network, data: Dataset, key: Any, progress: Any
) -> Optimum:
    scaling = Scaling.of(data)
    sample = sample_of(data, key)
    linear = getattr(recipe, "model", recipe).forerunner.build(sample, key, like=data)
    start = _linear_optimum(linear, sample, scaling, key, progress)
    if start.status.code in ("failed", "interrupted"):
        return dataclasses.replace(start, model=network)
    network = begin(network, to_numpy(start.model))
    own = blocks_of(as_arrays(network.q))
    records = build_objective(network, data, scaling, None).records
    plain = _Networks(replace_q(network, None), None)
    starts = [
        settle(_of_source(plain, records, i), _trained(plain), own)[0] for i in range(len(records))
    ]
    weights = tuple(q.map(lambda block: Relative.to(block.moments)).w for q in starts)
    whole = _Networks(replace_q(network, None), weights)
    objective = Objective(*as_arrays(partition(whole)), records=records)
    parts = [Profiled(_of_source(whole, records, i), q.f) for i, q in enumerate(starts)]
    settings = LBFGS(tolerance=2e-5, starts=1, candidates=0)
    loss = _Profiles(objective, parts)
    unit = log_unit(scaling, data)
    found = maximise(objective, unit, settings, 0, as_progress(progress), TITLE, loss)
    together = Objective(*as_arrays(partition(to_numpy(found.model))), records=records)
    settled, _ = settle(together, together.start, own)
    q = trained_q(settled.map(lambda block: block.moments))
    return dataclasses.replace(found, trained=None, model=replace_q(to_numpy(found.model), q))


def with_weights(model: Any, objective: Objective) -> Any:
    """Return a model for weighted records, its parameters kept."""
    if not isinstance(model, Network):
        return model
    own = blocks_of(as_arrays(model.q))
    plain = to_numpy(replace_q(model, None))
    target = Objective(*as_arrays(partition(plain)), records=objective.records)
    settled, _ = settle(target, target.start, own)
    return replace_q(plain, trained_q(settled.map(lambda block: block.moments)))


def _trained(whole: _Networks) -> Any:
    return as_arrays(partition(whole)[0])


def _of_source(whole: _Networks, records: Sequence[Record], process: int) -> _OfSource:
    trained, frozen = as_arrays(partition(whole))
    return _OfSource(trained, frozen, (records[process],), process)
