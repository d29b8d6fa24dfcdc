"""What an experiment folder says: data, models and variants, from its TOML."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from mrgp import datasets
from mrgp.config.text import read_toml
from mrgp.experiments.metering import Cost
from mrgp.experiments.rivals import ExperimentError, ModelSpec

FILE = "experiment.toml"
Simulator = Literal[
    "dependent",
    "dependent_map",
    "mcmc_dependent",
    "biased",
    "biases",
    "mixing",
    "scaling",
    "outliers",
]
Recorded = Literal[
    "inter_task",
    "inter_task_laqn",
    "fusion",
    "london_no2",
    "london_year",
    "gauntlet",
    "counts",
]


class Replicates(NamedTuple):
    """What an experiment is repeated over: any seeds, or the folds or sites that there are.

    `load` takes a seed, or one of `names()`, and the settings of a variant. `names` takes those
    settings that `varies` lists. `scored` is what scores are of, where not of the replicate.

    >>> DATA["inter_task"].choose([1])
    {1: '20-21 June'}
    """

    noun: str
    load: Callable[..., datasets.Case]
    names: Callable[..., Sequence[str]] | None = None
    scored: str | None = None
    varies: tuple[str, ...] = ()

    def choose(
        self, numbers: Sequence[int] | None, settings: Mapping[str, Any] | None = None
    ) -> dict[int, Any]:
        """Return the replicates of some numbers, or all that there are, by number."""
        if self.names is None:
            return {number: number for number in numbers or ()}
        chosen_by = {k: v for k, v in (settings or {}).items() if k in self.varies}
        there = dict(enumerate(self.names(**chosen_by)))
        chosen = list(there) if numbers is None else list(numbers)
        wrong = [number for number in chosen if number not in there]
        if wrong:
            count = f"are {len(there)} {self.noun}s, 0 to {len(there) - 1}"
            raise ExperimentError(
                f"There {count if len(there) > 1 else f'is one {self.noun}, 0'}; {self.noun}"
                f" {wrong[0]} was asked for. Ask for --seeds {len(there)} or fewer."
            )
        return {number: there[number] for number in chosen}


DATA = {name: Replicates("seed", getattr(datasets, name)) for name in get_args(Simulator)} | {
    "inter_task": Replicates("fold", datasets.inter_task, datasets.folds),
    "inter_task_laqn": Replicates("site", datasets.inter_task_laqn, datasets.laqn_sites),
    "fusion": Replicates("fold", datasets.fusion, datasets.fusion_folds),
    "london_no2": Replicates(
        "fold", datasets.london_no2, datasets.london_folds, scored="site", varies=("protocol",)
    ),
    "london_year": Replicates(
        "fold",
        datasets.london_year,
        datasets.london_year_folds,
        varies=("protocol", "days"),
    ),
    "gauntlet": Replicates("start", datasets.gauntlet, datasets.gauntlet_starts, varies=("world",)),
    "counts": Replicates("draw", datasets.counts, datasets.counts_draws, varies=("world",)),
}


class Quick(BaseModel, extra="forbid"):
    """The small version that continuous integration runs."""

    seeds: int = 2
    variants: list[str]
    models: list[str] | None = None
    sampler: dict[str, Any] | None = None


class Experiment(BaseModel, extra="forbid"):
    """What an `experiment.toml` says.

    Data are of a `simulator`, repeated over `seeds`, or `recorded`, repeated over the folds or
    sites that there are (the first `seeds` of them, if given). The fits of the first `timed`
    replicates (default: of all) are made twice, for the CPU time of the second. Models with a
    `preset` are run where it is asked for, or by name. A variant may have
    the settings of a `sampler`: its models are then sampled, and not fitted. It may have `models`
    too, with what is different in that variant, and `seeds` of its own. `shown` are the scores and
    `costs` the costs that its table shows; with
    `isolated`, every fit has a process of its own, so that its costs are its own. Where it is
    `tolerant`, a fit that fails is scored as the mean of the training values, and named.

    >>> find("inter_task").recorded, find("inter_task").replicates.noun
    ('inter_task', 'fold')
    """

    name: str
    title: str
    simulator: Simulator | None = None
    recorded: Recorded | None = None
    seeds: int | None = None
    timed: int | None = Field(default=None, ge=0)
    costs: list[Cost] = ["cpu_seconds", "seconds"]
    shown: list[str] | None = None
    isolated: bool = False
    tolerant: bool = False
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
    def cases(self) -> str:
        """The name of the data."""
        return str(self.simulator or self.recorded)

    @property
    def replicates(self) -> Replicates:
        """What the experiment is repeated over."""
        return DATA[self.cases]

    @property
    def rules(self) -> list[str]:
        """The models that are simple rules."""
        return [name for name, spec in self.models.items() if spec.rule is not None]

    def model(self, name: str, variant: str) -> ModelSpec:
        """Return a model as it is in a variant."""
        spec, own = self.models[name], self.variants[variant].get("models", {}).get(name)
        if own is None:
            return spec
        # Settings of `options` are taken over one by one.
        options = spec.options | own.get("options", {})
        return ModelSpec.model_validate(spec.model_dump() | own | {"options": options})

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
    """Return the folders of experiments by name; those here come before those of the library."""
    room = Path(__file__).parents[1]
    places = (room.parents[1] / "experiments", room / "_experiments", Path("experiments"))
    found = {file.parent.name: file.parent for p in places for file in p.glob(f"*/{FILE}")}
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
        _, content = read_toml(folder / FILE)
    except ValueError as error:
        raise ExperimentError(str(error)) from None
    try:
        return Experiment.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        places = [str(folder / FILE), ".".join(str(part) for part in first["loc"])]
        reason = first["msg"].removeprefix("Value error, ").removesuffix(".")
        raise ExperimentError(": ".join([p for p in places if p] + [reason]) + ".") from None
