"""`fit`: from a recipe and a dataset to a `Fit` that can predict."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from mrgp._types import float64, to_numpy
from mrgp.data import Dataset, Scaling, as_seed
from mrgp.inference.objectives import build_objective, check_model
from mrgp.inference.optimisers import LBFGS, Status, maximise
from mrgp.inference.progress import as_progress
from mrgp.parameters import Parameter, at_limit


class FitError(RuntimeError):
    """A fit that ended without usable parameters."""


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fit:
    """A fitted model: recipe, parameters, posterior, scaling, and how the fit went.

    Exact fits carry the training data inside their posterior; `summary` says so.
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
    weights: Mapping[Any, float] | None = None,
    *,
    optimiser: LBFGS | None = None,
    progress: Any = "auto",
    throw: bool = True,
) -> Fit:
    """Fit a model to data.

    `weights` are composite weights, by (source, task) or by source. `progress` is "auto", "bar",
    "lines", None or an object; Ctrl-C stops the fit and keeps the best parameters. A numerical
    failure raises `FitError` unless `throw=False`, and is then told by `Fit.status`.

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
    seen = model.view(data)
    scaling = Scaling.of(seen)
    target = build_objective(model.build(seen, key), seen, scaling, weights)
    scales = [np.full(len(o.y), scaling.scale[scaling.index(o.task)]) for o in seen.dropna()]
    unit = float(np.mean(np.log(np.concatenate(scales))))
    optimum = maximise(target, unit, optimiser or LBFGS(), as_seed(key), as_progress(progress))
    trained = target.model(optimum.trained)
    state = to_numpy(_condition(trained, target.records))
    status = optimum.status
    if status.ok and not _is_finite(state):
        status = Status("failed", "the posterior is not finite")
    if throw and not status.ok:
        raise FitError(_diagnosis(seen, status))
    return Fit(
        recipe=model,
        model=to_numpy(trained),
        state=state,
        scaling=scaling,
        inputs=data.inputs,
        units=data.units,
        counts={o.process: (int(o.observed.sum()), int((~o.observed).sum())) for o in data},
        weights={p: float(r.weight) for p, r in zip(seen.processes, target.records, strict=True)},
        history=optimum.history,
        status=status,
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
