"""A fit: recipe, parameters, posterior, and how they came about."""

import dataclasses
import warnings
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.data import Dataset, Frame, Observations, Records, Scaling, harmonise
from mrgp.inference.ascent import Training
from mrgp.inference.lbfgs import LBFGS
from mrgp.inference.loop import Status
from mrgp.inference.nearby import at_places, next_to_places
from mrgp.inference.problem import Problem, recipe_name
from mrgp.inference.stochastic import Adam
from mrgp.inference.tallies import checksum_of, counts_of
from mrgp.likelihoods import Likelihood
from mrgp.models import Components, Model, Process, Question, Recipe
from mrgp.models.contract import State
from mrgp.supports import Axis, Field, Geometry, Support, same_fields

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


class Learned:
    """What fits and chains have in common: the names in the data, and labels for supports."""

    model: Any
    inputs: tuple[str, ...]
    axes: tuple[Axis | None, ...] | None
    covariates: tuple[Field, ...] | None

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task) that were fitted."""
        return self.model.processes

    exposed: tuple[Process, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks."""
        return tuple(dict.fromkeys(task for _, task in self.processes))

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(dict.fromkeys(source for source, _ in self.processes))

    def labelled(self, support: Support) -> Support:
        """Give a support that has no names or axes of its own those of the data."""
        axes = support.axes or (self.axes and self.axes[: support.dimension])
        inputs = support.inputs or self.inputs[: support.dimension]
        whole = support.dimension == len(self.inputs)
        covariates = support.covariates or (self.covariates if whole else None)
        return dataclasses.replace(support, inputs=inputs, axes=axes, covariates=covariates)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fit(Learned):
    """A fitted model: recipe, parameters, posterior, scaling, and how the fit went.

    Exact fits keep the training data, as `records`; `summary` says so. `history` is the
    bound after each step of L-BFGS. For Adam it is the mean over each stretch of 50 steps, on
    minibatches their noisy estimate, with the bound of all the data at the end. `bounds` are the
    least and the greatest coordinates of the data's supports. `reasons` say why this recipe, where
    it was chosen for the data. `spaces` are the inputs that are directions of one space. `doubts`
    are what to be careful of in the data, and `unitless` are the processes that came without units.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5], name="tubes")
    >>> quick = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=quick)
    >>> fit.counts
    {('tubes', 'value'): (3, 0)}
    >>> sorted(fit.parameters())
    ['kernel.lengthscale', 'kernel.variance', 'mean.constant', 'noise_variance[tubes]']
    """

    recipe: Recipe
    model: Model
    state: State
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
    records: Records | None = None
    likelihoods: dict[Process, Likelihood] = dataclasses.field(default_factory=dict)
    spaces: tuple[tuple[str, ...], ...] = ()
    exposed: tuple[Process, ...] = ()
    doubts: tuple[str, ...] = ()
    unitless: tuple[Process, ...] = ()

    @property
    def name(self) -> str:
        """What was fitted: the recipe, and those that it wraps."""
        return recipe_name(self.recipe)

    def components(self, support: Support, asked: Question, noise: bool = False) -> Components:
        """Return what the model says of a support in centred coordinates, as components."""
        space = [d for names in self.spaces for d in map(self.inputs.index, names)]
        support = at_places(self.model, self.records, support, space)
        said = next_to_places(self.model, self.records, support, space, self.axes)
        if said is not None:
            warnings.warn(f"predict: {said}", stacklevel=4)
        found = self.model.predict(self.state, self.recipe.view_of(support), asked)
        if asked.exposure is not None:
            found = found.scaled(asked.exposure)
        if not noise:
            return found
        process = (str(asked.source), asked.task)
        own = self.model.observation_noise(process) if asked.trials is None else asked.trials
        return found.observed(self.likelihoods[process], own)

    def problem(self, data: Dataset) -> Problem:
        """Return the problem of other data with the recipe, scaling and weights of the fit."""
        seen = self.recipe.view(data)
        frame = Frame(self.scaling, Geometry.of(seen.supports))
        records = self.scaling.records(seen, self.weights)
        return Problem(self.recipe, data, seen, frame, records, self.key)

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

    @float64
    def condition(self, data: Dataset) -> "Fit":
        """Return the same parameters with other data of the same sources.

        Nothing is fitted: the posterior is that of the new data, with the weights of this fit.

        >>> import mrgp
        >>> def seen(y):
        ...     return mrgp.Dataset([mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), y)])
        >>> fit = mrgp.fit(mrgp.MRGP(), seen([0.0, 1.0, 0.5]))
        >>> other = fit.condition(seen([5.0, 6.0, 5.5]))
        >>> place = mrgp.points([[1.0]])
        >>> bool(mrgp.predict(other, place).mean > mrgp.predict(fit, place).mean)
        True
        """
        from mrgp.inference.fitting import condition

        return condition(self, data)

    @float64
    def extend(self, more: Dataset) -> "Fit":
        """Return the same parameters with further values on top of those that the fit keeps.

        For fits that keep their data: exact ones, dense or along time. `more` has further values
        of some of the sources, at any time and place; the result is that of `condition` on all.
        Along time, what comes after a state that is kept before the earliest of them is filtered.

        >>> import mrgp
        >>> def seen(x, y):
        ...     return mrgp.Dataset([mrgp.Observations(mrgp.points([[v] for v in x]), y)])
        >>> fit = mrgp.fit(mrgp.MRGP(), seen([0.0, 1.0, 2.0], [0.0, 1.0, 0.5]))
        >>> fit.extend(seen([3.0], [0.7])).counts
        {('source', 'value'): (4, 0)}
        """
        from mrgp.inference.fitting import extend

        return extend(self, more)

    def bias_map(self, source: Any, values: Any = None, at: Any = None) -> Any:
        """Return the `BiasMap` that a deep model learned from a source, or task, to the target.

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
        from mrgp.checks import bias_map

        return bias_map(self, source, values, at)

    def leave_one_out(self) -> Any:
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
        from mrgp.checks import leave_one_out

        return leave_one_out(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful of, each with its likely cause and what to try; mostly nothing.

        >>> import mrgp
        >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
        >>> mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors])).warnings
        ()
        """
        from mrgp.checks import cautions

        return cautions(self)

    def effects(self) -> Any:
        """Return the effects of covariates as a frame, with standard deviations and intervals.

        Rows are levels of categories, as `type=kerb`, in the units of the values and about the mean
        of all levels; and slopes of numbers, for one unit of the column.

        >>> import numpy as np, mrgp
        >>> x, kind = np.arange(12.0)[:, None], ["park", "road"] * 6
        >>> support = mrgp.points(x, covariates={"type": kind})
        >>> seen = mrgp.Observations(support, np.where(np.array(kind) == "road", 9.0, 5.0))
        >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]))
        >>> fit.effects()["mean"].round(1).to_dict()
        {'type=park': -2.0, 'type=road': 2.0}
        """
        from mrgp.checks import effects

        return effects(self)

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

    def units_of(self, process: Process) -> str | None:
        """Return the units that a source gave its values of a task; None where it gave none.

        >>> import mrgp
        >>> x = mrgp.points([[0.0], [1.0], [2.0]])
        >>> tubes = mrgp.Observations(x, [3.0, 4.0, 3.5], name="tubes", units="ug/m3")
        >>> depth = mrgp.Observations(x, [0.3, 0.4, 0.3], name="depth")
        >>> fit = mrgp.fit(mrgp.MRGP(bias="affine"), mrgp.Dataset([tubes, depth]))
        >>> [fit.units_of(process) for process in fit.processes]
        ['ug/m3', None]
        """
        return None if process in self.unitless else self.units.get(process[1])

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
        found = {o.process: o for part in self.parts.values() for o in part.kept_data() or ()}
        for process, record in zip(self.processes, self.records or (), strict=False):
            source, task = process
            level = self.scaling.offset[self.scaling.index(task)]
            found[process] = Observations(
                self.labelled(record.support.shift(-self.scaling.centre)),
                np.asarray(record.y) + level * np.asarray(record.support.total),
                task=task,
                name=source,
                units=self.units_of(process),
                noise_variance=record.noise_variance,
                likelihood=record.likelihood,
            )
        return Dataset([found[p] for p in self.processes if p in found]) if found else None

    def summary(self) -> str:
        """Describe the fit in words: data, status, parameters."""
        from mrgp.inference.account import account

        return account(self)

    def __repr__(self) -> str:
        used = sum(n for n, _ in self.counts.values())
        return f"Fit({self.name}, {used} values, {self.status})"


def _in_words(counts: dict[tuple[str, str], tuple[int, int]]) -> str:
    return ", ".join(
        f"{used} values of {source}, {task}" for (source, task), (used, _) in counts.items()
    )
