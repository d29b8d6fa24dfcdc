"""The models of an experiment: what they may see, how they are fitted, and how weighted."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from mrgp._types import float64
from mrgp.config.described import Described
from mrgp.data import Dataset
from mrgp.experiments.risks import RISKS, Rated, RateScale, Risk, as_rates
from mrgp.inference import Fit, Problem, Silent, Status, check_recipe
from mrgp.likelihoods import as_likelihood
from mrgp.models import Process
from mrgp.selection import RULES, fit
from mrgp.weighting import Asked, CompositeWeights, adjust_curvature, weigh_sources

Preset = Literal["paper", "auto"]


class ExperimentError(ValueError):
    """An experiment that cannot be found, read or run as asked.

    >>> from mrgp import experiments
    >>> experiments.DATA["inter_task"].choose([9])
    Traceback (most recent call last):
    mrgp.experiments.rivals.ExperimentError: There are 5 folds, 0 to 4; fold 9 was asked for...
    """


class ModelSpec(Described):
    """A model of an experiment, and the data it may see.

    `sources` and `tasks` default to all; `own_tasks` are sources that are taken as tasks of their
    own; with `covariates = false` it sees none. `weights` is the rule of the composite weights, or
    "curvature" for the adjustment in their place. The recipe "rule" is a simple one, by the name of
    `rule`, or by that of `risk` where values are counts. `rates` takes counts for Gaussian rates,
    or for logarithms of rates; `likelihood` is another one for sources whose values it can have.
    With `sample`, parameters are fitted to so many values of each source, drawn at random, and the
    posterior is that of all. A `preset` is run where it is asked for: "paper" has the paper's
    kernels, starting values, sizes and steps, "auto" the automatic choice.

    >>> ModelSpec(recipe="MRGP", kernel="RBF", sources=["fine"]).build().kernel
    RBF()
    """

    beside_auto: ClassVar[tuple[str, ...]] = (
        *("recipe", "rule", "risk", "preset", "sources", "tasks", "own_tasks", "covariates"),
    )
    recipe: Literal["MRGP", "VBAgg", "MRGPRN", "MRDGP", "Cascade", "auto", "rule"]  # pyright: ignore[reportIncompatibleVariableOverride]
    rule: str | None = None
    risk: str | None = None
    rates: RateScale | None = None
    likelihood: str | None = None
    preset: Preset | None = None
    sources: list[str] | None = None
    tasks: list[str] | None = None
    weights: Literal["ratio", "ribatet", "lyddon", "curvature"] | None = None
    hyperparameters: Literal["refit", "keep"] = "refit"
    own_tasks: list[str] | None = None
    covariates: bool = True
    sample: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def check_fit(self) -> "ModelSpec":
        """Refuse weights and samples that the model cannot have."""
        named = [name for name in (self.rule, self.risk) if name is not None]
        known = self.rule in (None, *RULES) and self.risk in (None, *RISKS)
        if len(named) != (self.recipe == "rule") or not known:
            raise ValueError(
                f'recipe = "rule" has one of rule = {", ".join(RULES)}, or one of risk ='
                f" {', '.join(RISKS)}, and no other"
            )
        if self.recipe in ("auto", "rule"):
            return self
        made = self.build()
        check_recipe(made, None if self.weights is None else "auto")
        if self.weights == "curvature" and self.recipe != "MRGP":
            raise ValueError(f'weights = "curvature" goes with MRGP; got {self.recipe}')
        if made.fitted == "parts" and (self.sample, self.hyperparameters) != (None, "refit"):
            raise ValueError(f"{self.recipe} has no sample = and no hyperparameters =")
        if self.sample is not None and not self._follows():
            raise ValueError(
                "sample = goes with MRGP or VBAgg that have inducing =, or with MRGPRN that has"
                ' inducing_f = and kernel_w = "constant": others have no posterior of all data in'
                " one pass"
            )
        return self

    def _follows(self) -> bool:
        """Tell whether the posterior of all data follows from the parameters."""
        if self.recipe == "MRGPRN":
            return self.kernel_w == "constant" and "inducing_f" in self.options
        return "inducing" in self.options

    def fit(self, data: Dataset, key: int, earlier: Fit | None = None) -> Fit:
        """Fit the model, with composite weights where it has a rule for them.

        A deep model takes over the parts of an earlier fit that had the same data.
        """
        recipe, settings = self.build(), {"key": key, "progress": None}
        if recipe == "auto":
            return fit(recipe, data, **settings)
        if self.weights == "curvature":
            made = fit(recipe, data, hyperparameters="keep", **settings)
            return adjust_curvature(uninterrupted(made), data)
        settings["optimiser"] = self.build_optimiser()
        if recipe.fitted == "parts":
            return fit(recipe, data, **settings, reuse=earlier)
        settings |= {"hyperparameters": self.hyperparameters, "weights": self.weigh(data, key)}
        if self.sample is None:
            return fit(recipe, data, **settings)
        return fit(recipe, data.batch(self.sample, key), **settings).condition(data)

    def weigh(self, data: Dataset, key: int) -> CompositeWeights | None:
        """Return the composite weights, where the model has a rule for them."""
        if self.weights is None:
            return None
        # What the account of one replicate warns of is for its table to show.
        problem = Problem.of(self.build(), data, key=key)
        found, alone = float64(weigh_sources)(problem, Asked(rule=self.weights), Silent())
        uninterrupted(alone)
        return found

    def view(self, data: Dataset) -> Dataset:
        """Return the sources and tasks the model may see."""
        own = self.own_tasks or ()
        unknown = [source for source in own if source not in data.sources]
        if unknown:
            raise ExperimentError(
                f"own_tasks = names {unknown[0]!r}, which is no source; there are {data.sources}."
            )
        tasks = Dataset(o.replace(task=o.name) if o.name in own else o for o in data)
        seen = tasks.select(source=self.sources, task=self.tasks)
        if self.likelihood is not None:
            made = as_likelihood(self.likelihood, "likelihood =")
            alike = [o.likelihood.domain == made.domain for o in seen]
            seen = Dataset(
                o.replace(likelihood=made) if same else o
                for o, same in zip(seen, alike, strict=True)
            )
        return seen if self.rates is None else as_rates(seen, self.rates)

    @property
    def says_risk(self) -> bool:
        """Whether what it says of counts follows from a rate."""
        return self.risk is not None or self.rates is not None

    def risk_of(self, data: Dataset, target: Process, key: int) -> Risk:
        """Fit a rival of models of counts."""
        seen = data[target]
        if self.risk is not None:
            return RISKS[self.risk](seen)
        assert self.rates is not None
        return Rated(uninterrupted(self.fit(self.view(data), key)), self.rates, seen)


def uninterrupted(found: Any) -> Any:
    """Pass a user's stop on: a fit keeps the best so far, but a table must not have it."""
    status: Status = found.status
    if status.code == "interrupted":
        raise KeyboardInterrupt
    return found
