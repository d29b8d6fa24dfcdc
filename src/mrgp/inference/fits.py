"""A fit: recipe, parameters, posterior, and how they came about."""

import dataclasses
import zlib
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.data import Dataset, Scaling, harmonise
from mrgp.inference.ascent import Training
from mrgp.inference.bias import BiasMap, bias_map
from mrgp.inference.kept import kept_data
from mrgp.inference.leave_one_out import LeaveOneOut, leave_one_out
from mrgp.inference.optimisers import LBFGS, Status
from mrgp.inference.stochastic import Adam
from mrgp.parameters import Parameter, at_limit
from mrgp.supports import Axis, Field, same_fields

Treatment = Literal["refit", "keep", "adjusted"]
"""Parameters of the weighted data, or of each source alone, or these with a wider posterior."""


class FitError(RuntimeError):
    """A fit that ended without usable parameters.

    Its text names the sources with the range of their values. `mrgp.fit(..., throw=False)` returns
    such a fit instead of raising, and `fit.status` has the reason.

    >>> raise FitError("The fit failed: the posterior is not finite.")
    Traceback (most recent call last):
    mrgp.inference.fits.FitError: The fit failed: the posterior is not finite.
    """


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fit:
    """A fitted model: recipe, parameters, posterior, scaling, and how the fit went.

    Exact fits carry the training data inside their posterior; `summary` says so. `history` is the
    bound after each step of L-BFGS. For Adam it is the mean over each stretch of 50 steps, on
    minibatches their noisy estimate, with the bound of all the data at the end. `bounds` are the
    least and the greatest coordinates of the data's supports. `reasons` say why this recipe, where
    it was chosen for the data.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5], name="tubes")
    >>> quick = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=quick)
    >>> fit.counts
    {('tubes', 'value'): (3, 0)}
    >>> sorted(fit.parameters())
    ['kernel.lengthscale', 'kernel.variance', 'mean.constant', 'noise_variance[tubes]']
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
    bounds: Float[np.ndarray, "2 d"]
    treatment: Treatment = "refit"
    parts: dict[str, "Fit"] = dataclasses.field(default_factory=dict)
    key: int = 0
    reasons: tuple[str, ...] = ()

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
        # `fitting` knows how fits are made, and makes this class.
        from mrgp.inference.fitting import resume

        return resume(self, data, optimiser, progress, throw)

    def bias_map(self, source: Any, values: Any = None, at: Any = None) -> BiasMap:
        """Return the map that a deep model learned from a source, or another task, to the target.

        A source of another task is asked for as (source, task), for the map to that task's target.
        `values` are those of the source to look at (default: the range it was learned on), `at`
        the place, by input, of a map that changes over the `deep_inputs`.

        >>> import numpy as np, mrgp
        >>> x = np.linspace(0.0, 6.0, 30)[:, None]
        >>> sat = mrgp.Observations(mrgp.points(x), 0.5 * np.sin(x[:, 0]), name="sat")
        >>> laqn = mrgp.Observations(mrgp.points(x[::2]), np.sin(x[::2, 0]), name="laqn")
        >>> fit = mrgp.fit(mrgp.MRDGP(target="laqn"), mrgp.Dataset([laqn, sat]))
        >>> fit.bias_map("sat", values=[0.25]).mean.round(1)
        array([0.5])
        """
        return bias_map(self, source, values, at)

    def leave_one_out(self) -> LeaveOneOut:
        """Predict every value from all the others, in closed form, with the parameters held.

        For exact fits. Means and variances are those of the values themselves, noise included;
        `scores()` has the names of `mrgp.evaluate`, and `summary()` says whether the residuals are
        what the model expects, and which values are farthest from the others.

        >>> import numpy as np, mrgp
        >>> x = np.linspace(0.0, 6.0, 30)[:, None]
        >>> y = 3.0 + np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(30)
        >>> sensors = mrgp.Observations(mrgp.points(x), y, name="sensors")
        >>> loo = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors])).leave_one_out()
        >>> loo["sensors"]
        LeftOut(sensors, value: 30 values, rmse 0.09...)
        >>> bool(loo.scores()["overall"]["coverage_95"] > 0.8)
        True
        """
        return leave_one_out(self)

    def has_data(self, data: Dataset) -> bool:
        """Tell whether these are the data of the fit, in its order."""
        return (
            counts_of(data) == self.counts
            and data.inputs == self.inputs
            and same_fields(data.covariates, self.covariates)
            and checksum_of(data) == self.checksum
        )

    def same_data(self, data: Dataset, where: str = "resume") -> Dataset:
        """Return the data in the order and the numbers of the fit, or say how they differ."""
        counts = counts_of(data)
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
        if checksum_of(ordered) != self.checksum:
            raise ValueError(
                f"{where} goes on with the data of the fit, but these have other values. Call fit"
                " for other data."
            )
        return ordered

    def plot(self, kind: str = "overview") -> Any:
        """Draw how the fit went and what it learned; return the figure.

        `kind` is "history", "noise", "bias" or "lengthscales", or "overview", all of these that
        the fit has.

        >>> import mrgp
        >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
        >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
        >>> [axes.get_xlabel() for axes in fit.plot().axes]
        ['step', 'noise sd', 'lengthscale of x1']
        """
        from mrgp.plotting import plot_fit

        return plot_fit(self, kind)

    def diagram(self, data: Dataset | None = None) -> Any:
        """Draw the model as it is for these data; return the figure.

        Exact fits, and deep models of exact parts, keep their data and need not be given them.

        >>> import mrgp
        >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
        >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
        >>> fit.diagram().axes[0].get_title()
        'MRGP'
        """
        from mrgp.plotting import plot_diagram

        data = self.kept_data() if data is None else data
        missing = self.processes if data is None else set(self.processes) - set(data.processes)
        if data is None or missing:
            raise ValueError(
                "diagram: this fit does not keep the data of all its sources; give them, as"
                " fit.diagram(data)."
            )
        return plot_diagram(self.recipe, data)

    def kept_data(self) -> Dataset | None:
        """Return the observed values that the fit keeps, or None where it keeps none.

        Exact fits keep theirs, and deep models those of their exact base GPs. Polygons are nodes
        without outlines, and `CenterPoint` keeps points.

        >>> import mrgp
        >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [3.0, 4.0, 3.5])
        >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
        >>> fit.kept_data()["source"].y.round(6)
        array([3. , 4. , 3.5])
        """
        return kept_data(self)

    def summary(self) -> str:
        """Describe the fit in words: data, status, parameters."""
        lines = [f"{_recipe_name(self.recipe)}, {self.status}"]
        lines += [f"  chosen: {reason}" for reason in self.reasons]
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


def checksum_of(data: Dataset) -> int:
    """Return a number that tells other values, or other regions, apart."""
    found = 0
    for o in data:
        seen = o.dropna()
        noise = np.zeros(0) if seen.noise_variance is None else seen.noise_variance
        support = seen.support
        for array in (seen.y, noise, *support.bounds, support.moment, support.total):
            found = zlib.crc32(np.ascontiguousarray(array, np.float64).tobytes(), found)
    return found


def counts_of(data: Dataset) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many values of each process are observed, and how many missing."""
    return {o.process: (int(o.observed.sum()), int((~o.observed).sum())) for o in data}


def _in_words(counts: dict[tuple[str, str], tuple[int, int]]) -> str:
    return ", ".join(
        f"{used} values of {source}, {task}" for (source, task), (used, _) in counts.items()
    )


def _remark(parameter: Parameter | None) -> str:
    if parameter is None:
        return ""
    if not parameter.trainable:
        return "  (fixed)"
    return "  (at its limit)" if at_limit(parameter) else ""


def _recipe_name(recipe: Any) -> str:
    inner = getattr(recipe, "model", None)
    name = type(recipe).__name__
    return name if inner is None else f"{name}({_recipe_name(inner)})"
