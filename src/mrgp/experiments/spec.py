"""What an experiment folder says: data, models and variants, from its TOML."""

import contextlib
import dataclasses
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mrgp import models
from mrgp._types import float64
from mrgp.data import Dataset
from mrgp.experiments.conditioning import condition_on
from mrgp.experiments.parts import KernelSpec, OptimiserSpec, make_inducing, make_kernel
from mrgp.experiments.replicates import DATA, ExperimentError, Replicates
from mrgp.inference import CompositeWeights, Fit, Status, adjust_curvature, fit
from mrgp.inference.composite import weigh_sources
from mrgp.inference.objectives import check_model, is_deep
from mrgp.parameters import LogNormal, Parameter, positive
from mrgp.supports import GaussLegendre

FILE = "experiment.toml"


Cost = Literal["cpu_seconds", "seconds", "peak_mb", "predict_seconds", "predict_peak_mb"]
Simulator = Literal[
    "dependent", "dependent_map", "mcmc_dependent", "biased", "biases", "mixing", "scaling"
]
Preset = Literal["paper", "auto"]
KERNELS = ("kernel", "kernel_f", "kernel_w", "kernel_base", "kernel_deep")


class ModelSpec(BaseModel):
    """A model of an experiment: recipe and kernels by name, and the data it may see.

    `center_point` takes regions for their centres; `sources` and `tasks` default to all. `weights`
    is the rule of the composite weights, or "curvature" for the adjustment in their place;
    `averages` names the sources that average others' values, errors included; `own_tasks` those
    that are taken as tasks of their own. `priors` has median and log-sd of log-normal priors of the
    kernel's parameters, `noise` those of noise variances, or variances to start from. `bases` has
    kernels of a deep model's bases by source. `nodes` is how many Gauss-Legendre nodes a region has
    along each side, where it has any. With `sample`, parameters are fitted to so many values of
    each source, drawn at random, and the posterior is that of all. The recipe "auto" is the model
    that is chosen for the data. A `preset` is run where it is asked for: "paper" has the paper's
    kernels, starting values, sizes and steps, "auto" the automatic choice.

    >>> ModelSpec(recipe="MRGPRN", kernel_w="constant", options={"latents": 2}).build().latents
    2
    """

    model_config = ConfigDict(extra="forbid")
    preset: Preset | None = None
    recipe: Literal["MRGP", "VBAgg", "MRGPRN", "MRDGP", "Cascade", "auto"]
    center_point: bool = False
    kernel: KernelSpec | None = None
    kernel_f: KernelSpec | None = None
    kernel_w: KernelSpec | Literal["constant"] | None = None
    kernel_base: KernelSpec | None = None
    kernel_deep: KernelSpec | None = None
    bases: dict[str, KernelSpec] | None = None
    sources: list[str] | None = None
    tasks: list[str] | None = None
    weights: Literal["ratio", "ribatet", "lyddon", "curvature"] | None = None
    hyperparameters: Literal["refit", "keep"] = "refit"
    averages: dict[str, str] | None = None
    own_tasks: list[str] | None = None
    priors: dict[str, tuple[float, float]] = Field(default_factory=dict)
    noise: dict[str, tuple[float, float] | float] | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    optimiser: OptimiserSpec | None = None
    nodes: int | None = Field(default=None, ge=1)
    sample: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def check(self) -> "ModelSpec":
        """Make the recipe once, so that a wrong setting is known when the file is read."""
        if self.recipe == "auto":
            return self._check_auto()
        try:
            self._check_names()
            made, _ = self.build(), self._optimiser()
        except TypeError as error:
            raise ValueError(str(error)) from None
        check_model(made, None if self.weights is None else "auto")
        self._check_sample()
        if self.weights == "curvature" and not isinstance(made, models.MRGP):
            raise ValueError(f'weights = "curvature" goes with MRGP; got {self.recipe}')
        return self

    def _check_auto(self) -> "ModelSpec":
        """Refuse settings of a model that is yet to be chosen."""
        free = {"preset", "recipe", "sources", "tasks", "own_tasks"}
        given = sorted(self.model_fields_set - free)
        if given:
            raise ValueError(f'recipe = "auto" chooses {given[0]} itself; leave it out')
        return self

    def _check_sample(self) -> None:
        """Refuse a sample where the posterior of all data does not follow from the parameters."""
        if is_deep(self.build()) and (self.sample, self.hyperparameters) != (None, "refit"):
            raise ValueError(f"{self.recipe} has no sample = and no hyperparameters =")
        if self.sample is None:
            return
        solved = self.recipe != "MRGPRN" or self.kernel_w == "constant"
        sparse = ("inducing_f" if self.recipe == "MRGPRN" else "inducing") in self.options
        if not (solved and sparse):
            raise ValueError(
                "sample = goes with MRGP or VBAgg that have inducing =, or with MRGPRN that has"
                ' inducing_f = and kernel_w = "constant": others have no posterior of all data in'
                " one pass"
            )

    def _check_names(self) -> None:
        known = [field.name for field in dataclasses.fields(getattr(models, self.recipe))]
        unknown = [name for name in self._settings() if name not in known]
        if unknown:
            raise ValueError(f"{self.recipe} has no {unknown[0]}=; it has {', '.join(known)}")

    def build(self) -> Any:
        """Make the recipe; "auto" is left to `fit`."""
        if self.recipe == "auto":
            return "auto"
        recipe = getattr(models, self.recipe)(**self._settings())
        if self.averages is not None:
            recipe = models.Dependent(recipe, self.averages)
        return models.CenterPoint(recipe) if self.center_point else recipe

    def fit(self, data: Dataset, key: int, earlier: Fit | None = None) -> Fit:
        """Fit the model, with composite weights where it has a rule for them.

        A deep model takes over the parts of an earlier fit that had the same data.
        """
        recipe, settings = self.build(), {"key": key, "progress": None}
        if recipe == "auto":
            return fit(recipe, data, **settings)
        if is_deep(recipe):
            return fit(recipe, data, **settings, optimiser=self._optimiser(), reuse=earlier)
        if self.weights == "curvature":
            made = fit(recipe, data, hyperparameters="keep", **settings)
            stop_if_stopped(made.status)
            return adjust_curvature(made, data)
        weights = self.weigh(data, key)
        settings |= {"hyperparameters": self.hyperparameters, "optimiser": self._optimiser()}
        if self.sample is None:
            return fit(recipe, data, weights=weights, **settings)
        drawn = data.batch(self.sample, key)
        return condition_on(fit(recipe, drawn, weights=weights, **settings), data)

    def weigh(self, data: Dataset, key: int) -> CompositeWeights | None:
        """Return the composite weights, where the model has a rule for them."""
        if self.weights is None:
            return None
        # What the account of one replicate warns of is for its table to show.
        weigh = float64(weigh_sources)
        found, alone = weigh(self.build(), data, rule=self.weights, key=key, progress=None)
        stop_if_stopped(alone.status)
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
        return tasks.select(source=self.sources, task=self.tasks)

    def _optimiser(self) -> Any:
        return None if self.optimiser is None else self.optimiser.build()

    def _settings(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in KERNELS}
        priors = {name: _log_normal(*pair) for name, pair in self.priors.items()}
        made: dict[str, Any] = {
            name: given if given == "constant" else make_kernel(given, priors)
            for name, given in named.items()
            if given is not None
        }
        if self.bases is not None:
            made["kernel_base"] = {name: make_kernel(given) for name, given in self.bases.items()}
        if self.noise is not None:
            made["noise"] = {
                source: _log_normal(*given) if isinstance(given, tuple) else given
                for source, given in self.noise.items()
            }
        if self.nodes is not None:
            made["quadrature"] = GaussLegendre(self.nodes)
        return made | {
            name: make_inducing(value) if name.startswith("inducing") else value
            for name, value in self.options.items()
        }


def stop_if_stopped(status: Status) -> None:
    """Pass a user's stop on: a fit keeps the best so far, but a table must not have it."""
    if status.code == "interrupted":
        raise KeyboardInterrupt


def _log_normal(median: float, sd: float) -> Parameter:
    return positive(median, LogNormal(median, sd))


class Quick(BaseModel):
    """The small version that continuous integration runs."""

    model_config = ConfigDict(extra="forbid")
    seeds: int = 2
    variants: list[str]
    models: list[str] | None = None
    sampler: dict[str, Any] | None = None


class Experiment(BaseModel):
    """What an `experiment.toml` says.

    Data are of a `simulator`, repeated over `seeds`, or `recorded`, repeated over the folds or
    sites that there are (the first `seeds` of them, if given). The fits of the first `timed`
    replicates (default: of all) are made twice, for the CPU time of the second. Models with a
    `preset` are run where it is asked for, or by name. A variant may have
    the settings of a `sampler`: its models are then sampled, and not fitted. It may have `models`
    too, with what is different in that variant. `costs` are those that its table shows; with
    `isolated`, every fit has a process of its own, so that its costs are its own.

    >>> find("inter_task").recorded, find("inter_task").replicates.noun
    ('inter_task', 'fold')
    """

    model_config = ConfigDict(extra="forbid")
    name: str
    title: str
    simulator: Simulator | None = None
    recorded: Literal["inter_task", "inter_task_laqn", "fusion", "london_no2"] | None = None
    seeds: int | None = None
    timed: int | None = Field(default=None, ge=0)
    costs: list[Cost] = ["cpu_seconds", "seconds"]
    isolated: bool = False
    quick: Quick
    variants: dict[str, dict[str, Any]]
    models: dict[str, ModelSpec]

    @model_validator(mode="after")
    def check(self) -> "Experiment":
        """Check what several keys must agree on."""
        if (self.simulator is None) == (self.recorded is None):
            raise ValueError("give either simulator or recorded, and not both")
        if self.recorded is not None and any("sampler" in v for v in self.variants.values()):
            raise ValueError("a sampler goes with a simulator, whose truth is known")
        if self.simulator is not None and self.seeds is None:
            raise ValueError("a simulator needs seeds, the number of them to run by default")
        if len({"sampler" in variant for variant in self.variants.values()}) > 1:
            raise ValueError("either all variants have a sampler, or none")
        self.choose("variants", self.quick.variants)
        self.choose("models", self.quick.models)
        for variant, settings in self.variants.items():
            own = settings.get("models", {})
            if not isinstance(own, dict) or not all(isinstance(v, dict) for v in own.values()):
                raise ValueError(f"variants.{variant}.models has tables of settings by model")
            self.choose("models", list(own))
            _ = [self.model(name, variant) for name in self.models]
        return self

    @property
    def replicates(self) -> Replicates:
        """What the experiment is repeated over."""
        return DATA[str(self.simulator or self.recorded)]

    def model(self, name: str, variant: str) -> ModelSpec:
        """Return a model as it is in a variant."""
        spec, own = self.models[name], self.variants[variant].get("models", {}).get(name)
        return spec if own is None else ModelSpec.model_validate(_joined(spec.model_dump(), own))

    def choose(self, kind: str, names: Sequence[str] | None) -> list[str]:
        """Return the variants or models asked for, or all of them."""
        known = list(getattr(self, kind))
        unknown = [n for n in names or () if n not in known]
        if unknown:
            raise ExperimentError(
                f"{self.name} has no {kind[:-1]} {unknown[0]!r}; it has {', '.join(known)}."
            )
        return list(dict.fromkeys(names)) if names else known

    def choose_models(
        self, names: Sequence[str] | None, preset: str | None = None, quick: bool = False
    ) -> list[str]:
        """Return the models asked for, or ours, with those of a preset beside them."""
        if names:
            return self.choose("models", names)
        ours = [name for name, spec in self.models.items() if spec.preset is None]
        beside = [name for name, spec in self.models.items() if spec.preset == preset]
        if preset is not None and not beside:
            there = sorted({spec.preset for spec in self.models.values() if spec.preset})
            more = f" It has {', '.join(there)}." if there else " It has none."
            raise ExperimentError(f"{self.name} has no models of preset {preset!r}.{more}")
        chosen = self.quick.models if quick and self.quick.models else ours
        return chosen if preset is None else list(dict.fromkeys([*chosen, *beside]))


def _joined(whole: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a model with some of its own, those of `options` one by one."""
    options = whole["options"] | own.get("options", {})
    return whole | own | {"options": options}


def folders() -> list[Path]:
    """Return the places where experiments are looked for, first found first."""
    here = Path(__file__).parents[1]
    places = [Path("experiments"), here / "_experiments", here.parents[1] / "experiments"]
    return [place for place in places if place.is_dir()]


def available() -> dict[str, Experiment]:
    """Return every experiment that can be read, by name.

    >>> from mrgp import experiments
    >>> "dependent" in experiments.available()
    True
    """
    found: dict[str, Experiment] = {}
    for name, folder in _named().items():
        with contextlib.suppress(ExperimentError):
            found[name] = read(folder)
    return found


def _named() -> dict[str, Path]:
    files = [file for place in folders() for file in sorted(place.glob(f"*/{FILE}"))]
    found = {file.parent.name: file.parent for file in reversed(files)}
    return dict(sorted(found.items()))


def find(name: str) -> Experiment:
    """Return an experiment by name, or by the path of its folder.

    >>> from mrgp import experiments
    >>> experiments.find("dependent").simulator
    'dependent'
    """
    if (Path(name) / FILE).is_file():
        return read(Path(name))
    known = _named()
    if name not in known:
        listed = ", ".join(known) or "none here: run from a source checkout"
        raise ExperimentError(f"No experiment is named {name!r}; there are {listed}.")
    return read(known[name])


def read(folder: Path) -> Experiment:
    """Read and check an experiment folder."""
    try:
        content = tomllib.loads((folder / FILE).read_text())
        return Experiment.model_validate(content)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{folder / FILE} is not valid TOML: {error}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        places = [str(folder / FILE), ".".join(str(part) for part in first["loc"])]
        reason = first["msg"].removeprefix("Value error, ").removesuffix(".")
        raise ExperimentError(": ".join([p for p in places if p] + [reason]) + ".") from None
