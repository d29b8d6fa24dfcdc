"""`fit`: from a recipe and a dataset to a `Fit` that can predict."""

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from mrgp._types import float64, to_numpy
from mrgp.data import Dataset, Scaling, as_seed, harmonise
from mrgp.inference.ascent import Training, ascend
from mrgp.inference.composite import check_words, weigh_for_fit
from mrgp.inference.objectives import (
    Objective,
    build_objective,
    check_model,
    replace_q,
)
from mrgp.inference.optimisers import LBFGS, Direct, Optimum, Status, maximise
from mrgp.inference.progress import as_progress
from mrgp.inference.separate import with_weights
from mrgp.inference.stages import (
    begun,
    check_schedule,
    count,
    log_unit,
    optimise_network,
    warn_of_wide_regions,
)
from mrgp.inference.stochastic import Adam
from mrgp.models import Network
from mrgp.parameters import Parameter, at_limit
from mrgp.supports import Axis, Field, same_fields

Treatment = Literal["refit", "keep", "adjusted"]
"""Parameters of the weighted data, or of each source alone, or these with a wider posterior."""

NETWORK_LIMIT = 5000
NETWORK_SETTINGS = LBFGS(tolerance=2e-5, starts=1, candidates=0)


class FitError(RuntimeError):
    """A fit that ended without usable parameters."""


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fit:
    """A fitted model: recipe, parameters, posterior, scaling, and how the fit went.

    Exact fits carry the training data inside their posterior; `summary` says so. `history` is the
    bound after each step of L-BFGS. For Adam it is the mean over each stretch of 50 steps, on
    minibatches their noisy estimate, with the bound of all the data at the end.
    """

    recipe: Any
    model: Any
    state: Any
    scaling: Scaling
    inputs: tuple[str, ...]
    units: dict[str, str | None]
    counts: dict[tuple[str, str], tuple[int, int]]
    weights: dict[tuple[str, str], float]
    history: Float[np.ndarray, " steps"]
    status: Status
    optimiser: LBFGS | Adam
    training: Training | None
    axes: tuple[Axis | None, ...] | None
    covariates: tuple[Field, ...] | None
    checksum: int
    treatment: Treatment = "refit"

    @property
    def processes(self) -> tuple[tuple[str, str], ...]:
        """The pairs (source, task) that were fitted."""
        return self.model.processes

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks."""
        return tuple(dict.fromkeys(task for _, task in self.processes))

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(dict.fromkeys(source for source, _ in self.processes))

    @float64
    def parameters(self) -> dict[str, np.ndarray]:
        """Return every parameter by name, in the user's units."""
        return self.model.report(self.scaling)

    @float64
    def resume(
        self, data: Dataset, *, optimiser: Any = None, progress: Any = "auto", throw: bool = True
    ) -> "Fit":
        """Go on with a fit that was interrupted or ran out of steps, on the same data.

        A stochastic fit goes on exactly where it stopped, also after `save` and `load`; others
        start again from the parameters found. `optimiser` may give other numbers of steps and
        halvings.
        """
        if self.treatment != "refit":
            what = {"keep": 'with hyperparameters="keep"', "adjusted": "by adjust_curvature"}
            raise ValueError(
                f"resume: this fit was made {what[self.treatment]}, and has nothing to go on with."
            )
        data = self.same_data(data)
        seen = self.recipe.view(data)
        settings = self._same_settings(optimiser or self.optimiser)
        natural = self.training is not None and self.training.natural
        model = self.model.with_q() if natural else self.model
        target = build_objective(model, seen, self.scaling, self.weights)
        optimum = _optimise(target, settings, 0, progress, self.scaling, seen, self.training)
        return _finish(self.recipe, data, seen, target, optimum, settings, self.scaling, throw)

    def same_data(self, data: Dataset, where: str = "resume") -> Dataset:
        """Return the data in the order and the numbers of the fit, or say how they differ."""
        counts = _counts(data)
        if counts != self.counts:
            raise ValueError(
                f"{where} goes on with the data of the fit, which had {_in_words(self.counts)};"
                f" these have {_in_words(counts)}. Call fit for other data."
            )
        if data.inputs != self.inputs or not same_fields(data.covariates, self.covariates):
            raise ValueError(
                f"{where}: the inputs or their covariates are not those of the fit: {self.inputs}."
            )
        ordered = Dataset(
            o.replace(support=harmonise(o.support, self.axes, o.label))
            for o in (data[p] for p in self.processes)
        )
        if _checksum(ordered) != self.checksum:
            raise ValueError(
                f"{where} goes on with the data of the fit, but these have other values. Call fit"
                " for other data."
            )
        return ordered

    def _same_settings(self, settings: Any) -> LBFGS | Adam:
        if type(settings) is not type(self.optimiser):
            raise ValueError(
                f"resume: the fit was made with {type(self.optimiser).__name__}; got"
                f" {type(settings).__name__}."
            )
        if isinstance(settings, LBFGS):
            return dataclasses.replace(settings, starts=1, candidates=0)
        free = {"steps": settings.steps, "halvings": settings.halvings}
        if dataclasses.replace(self.optimiser, **free) != settings:
            raise ValueError(
                f"resume: only steps and halvings may differ from the first run's {self.optimiser}."
            )
        return settings

    def summary(self) -> str:
        """Describe the fit in words: data, status, parameters."""
        lines = [f"{_recipe_name(self.recipe)}, {self.status}"]
        if len(self.history):
            lines.append(f"  log evidence or bound, with log prior: {self.history[-1]:.3f}")
        for process, (used, missing) in self.counts.items():
            dropped = f", {missing} missing left out" if missing else ""
            weight = self.weights[process]
            weighted = f", composite weight {weight:.3g}" if weight != 1 else ""
            values = "1 value" if used == 1 else f"{used} values"
            units = f" in {self.units[process[1]]}" if self.units.get(process[1]) else ""
            lines.append(f"  {process[0]}, {process[1]}: {values}{units}{dropped}{weighted}")
        if self.treatment == "keep":
            lines.append("  parameters are those of each source on its own")
        if self.treatment == "adjusted":
            lines.append("  the posterior was widened by adjust_curvature")
        lines.append(f"  {self.model.account(self.state)}")
        values, named = self.parameters(), self.model.named()
        width = max(map(len, values), default=0)
        for name, value in values.items():
            numbers = ", ".join(f"{v:.4g}" for v in np.ravel(value))
            lines.append(f"  {name:<{width}}  {numbers}{_remark(named.get(name))}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        used = sum(n for n, _ in self.counts.values())
        return f"Fit({_recipe_name(self.recipe)}, {used} values, {self.status})"


@float64
def fit(
    model: Any,
    data: Dataset,
    key: Any = 0,
    weights: Mapping[Any, float] | str | None = None,
    hyperparameters: str = "refit",
    *,
    optimiser: Any = None,
    progress: Any = "auto",
    throw: bool = True,
) -> Fit:
    """Fit a model to data.

    `weights` are composite weights, by (source, task) or by source; "auto" finds them with
    `composite_weights`. `hyperparameters="keep"` holds the parameters at those of each source on
    its own, from which the weights come; "refit" fits them to the weighted data. `optimiser` is
    `LBFGS` or
    `Adam` with settings of your own; the default is L-BFGS, and Adam on minibatches for
    `method="svgp"`. `progress` is "auto", "bar", "lines", None or an object; Ctrl-C stops the fit
    and keeps the best parameters. A numerical failure raises `FitError` unless `throw=False`, and
    is then told by `Fit.status`.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors])).status.code
    'converged'
    """
    if isinstance(model, Dataset):
        raise TypeError("fit takes the model first and the data second: fit(model, data).")
    if not isinstance(data, Dataset):
        raise TypeError(
            f"fit takes a Dataset as second argument; got {type(data).__name__}. Wrap"
            " Observations as mrgp.Dataset([observations])."
        )
    check_model(model, weights)
    if not isinstance(optimiser, LBFGS | Adam | None):
        raise TypeError(f"optimiser= takes mrgp.LBFGS() or mrgp.Adam(); got {optimiser!r}.")
    check_words(weights, hyperparameters, optimiser)
    seen = model.view(data)
    scaling = Scaling.of(seen)
    by_source, alone = weigh_for_fit(model, data, weights, hyperparameters, key, progress)
    if alone is not None:
        return _keep(model, data, seen, scaling, by_source, alone, throw)
    built = model.build(seen, key)
    is_network = isinstance(built, Network)
    settings = optimiser or _usual_optimiser(built, seen)
    stopped = None
    if is_network:
        check_schedule(built, settings)
        built, stopped = begun(model, built, seen, key, by_source, settings, progress)
    target = build_objective(built, seen, scaling, by_source)
    if isinstance(settings, LBFGS) and target.has_q and not is_network:
        # The best q(u) of all is known, and with it the bound is the collapsed one.
        parts = (replace_q(tree, None) for tree in (target.start, target.frozen))
        target = Objective(*parts, records=target.records)
    if stopped is None:
        optimum = _optimise(target, settings, as_seed(key), progress, scaling, seen)
    else:
        brief = LBFGS(max_steps=1, starts=1, candidates=0)
        optimum = _optimise(target, brief, as_seed(key), None, scaling, seen)
        optimum = dataclasses.replace(optimum, status=stopped)
    return _finish(model, data, seen, target, optimum, settings, scaling, throw)


def _keep(
    recipe: Any,
    data: Dataset,
    seen: Dataset,
    scaling: Scaling,
    weights: Any,
    alone: Optimum,
    throw: bool,
) -> Fit:
    """Condition on the weighted data with the parameters of each source on its own."""
    target = build_objective(alone.model, seen, scaling, weights)
    target = build_objective(with_weights(alone.model, target), seen, scaling, weights)
    model, loss = target.model(target.start), Direct(target)
    history = np.array([-float(loss(target.start)[0]) * loss.size])
    optimum = dataclasses.replace(alone, model=model, history=history)
    kept = _finish(recipe, data, seen, target, optimum, LBFGS(), scaling, throw)
    return dataclasses.replace(kept, treatment="keep")


def _usual_optimiser(model: Any, data: Dataset) -> LBFGS | Adam:
    """Return L-BFGS, or Adam where the data are too many for every step to see all."""
    if isinstance(model, Network):
        return NETWORK_SETTINGS if count(data) <= NETWORK_LIMIT else Adam()
    return Adam() if getattr(model, "q", None) is not None else LBFGS()


def _optimise(
    target: Objective,
    settings: LBFGS | Adam,
    seed: int,
    progress: Any,
    scaling: Scaling,
    data: Dataset,
    training: Training | None = None,
) -> Optimum:
    unit = log_unit(scaling, data)
    shown = as_progress(progress)
    if isinstance(settings, Adam):
        return ascend(target, unit, settings, seed, shown, training)
    if isinstance(target.frozen, Network):
        return optimise_network(target, unit, settings, seed, shown)
    return maximise(target, unit, settings, seed, shown)


def _finish(
    recipe: Any,
    data: Dataset,
    seen: Dataset,
    target: Objective,
    optimum: Optimum,
    settings: LBFGS | Adam,
    scaling: Scaling,
    throw: bool,
) -> Fit:
    """Condition on all the data with the parameters found, and say how it went."""
    state = to_numpy(_condition(optimum.model, target.records))
    if isinstance(optimum.model, Network):
        warn_of_wide_regions(to_numpy(optimum.model), seen)
    status = optimum.status
    if status.ok and not _is_finite(state):
        status = Status("failed", "the posterior is not finite")
    if throw and not status.ok:
        raise FitError(_diagnosis(seen, status))
    return Fit(
        recipe=recipe,
        model=to_numpy(optimum.model),
        state=state,
        scaling=scaling,
        inputs=data.inputs,
        units=data.units,
        counts=_counts(data),
        weights={p: float(r.weight) for p, r in zip(seen.processes, target.records, strict=True)},
        history=optimum.history,
        status=status,
        optimiser=settings,
        training=optimum.training,
        axes=data.axes,
        covariates=data.covariates,
        checksum=_checksum(data),
    )


def _checksum(data: Dataset) -> int:
    """Return a number that tells other values apart."""
    return zlib.crc32(np.concatenate([o.y[o.observed] for o in data]).tobytes())


def _counts(data: Dataset) -> dict[tuple[str, str], tuple[int, int]]:
    return {o.process: (int(o.observed.sum()), int((~o.observed).sum())) for o in data}


def _in_words(counts: dict[tuple[str, str], tuple[int, int]]) -> str:
    return ", ".join(
        f"{used} values of {source}, {task}" for (source, task), (used, _) in counts.items()
    )


@eqx.filter_jit
def _condition(model: Any, records: Any) -> Any:
    return model.condition(records)


def _remark(parameter: Parameter | None) -> str:
    if parameter is None:
        return ""
    if not parameter.trainable:
        return "  (fixed)"
    return "  (at its limit)" if at_limit(parameter) else ""


def _is_finite(tree: Any) -> bool:
    return all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(tree))


def _diagnosis(data: Dataset, status: Status) -> str:
    ranges = (f"{o.label}: {np.nanmin(o.y):.4g} to {np.nanmax(o.y):.4g}" for o in data)
    return (
        f"The fit failed: {status.message}. Values range over {'; '.join(ranges)}. Look for extreme"
        " values, or starting values and known noise variances far from the data's scale."
    )


def _recipe_name(recipe: Any) -> str:
    inner = getattr(recipe, "model", None)
    name = type(recipe).__name__
    return name if inner is None else f"{name}({_recipe_name(inner)})"
