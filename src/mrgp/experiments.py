"""Run an experiment folder: data, models and variants from its TOML, scores out."""

import contextlib
import csv
import dataclasses
import json
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mrgp import datasets, kernels, models
from mrgp.data import Dataset
from mrgp.datasets import Recording, Simulation
from mrgp.evaluation import evaluate
from mrgp.inference import Progress, Silent, fit
from mrgp.prediction import predict

FILE = "experiment.toml"
Scores = dict[str, float]


class ExperimentError(ValueError):
    """An experiment that cannot be found, read or run as asked."""


class Replicates(NamedTuple):
    """What an experiment is repeated over: any seeds, or the folds or sites that there are.

    `load` takes a seed, or one of `names()`, and the settings of a variant.

    >>> DATA["inter_task"].choose([1])
    {1: '20-21 June'}
    """

    noun: str
    load: Callable[..., Simulation | Recording]
    names: Callable[[], Sequence[str]] | None = None

    def choose(self, numbers: Sequence[int] | None) -> dict[int, Any]:
        """Return the replicates of some numbers, or all that there are, by number."""
        if self.names is None:
            return {number: number for number in numbers or ()}
        there = dict(enumerate(self.names()))
        chosen = list(there) if numbers is None else list(numbers)
        wrong = [number for number in chosen if number not in there]
        if wrong:
            raise ExperimentError(
                f"There are {len(there)} {self.noun}s, 0 to {len(there) - 1}; {self.noun}"
                f" {wrong[0]} was asked for. Ask for --seeds {len(there)} or fewer."
            )
        return {number: there[number] for number in chosen}


DATA = {
    "dependent": Replicates("seed", datasets.dependent),
    "biased": Replicates("seed", datasets.biased),
    "mixing": Replicates("seed", datasets.mixing),
    "inter_task": Replicates("fold", datasets.inter_task, datasets.folds),
    "inter_task_laqn": Replicates("site", datasets.inter_task_laqn, datasets.laqn_sites),
}
LABELS = ("variant", "model", "seed", "fold", "site")

KernelName = Literal[
    "RBF",
    "Matern12",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
    "Polynomial",
    "ArcCosine",
    "SpectralMixture",
]


class ModelSpec(BaseModel):
    """A model of an experiment: recipe and kernels by name, and the data it may see.

    `center_point` takes regions for their centres; `sources` and `tasks` default to all.

    >>> ModelSpec(recipe="MRGPRN", kernel_w="constant", options={"latents": 2}).build().latents
    2
    """

    model_config = ConfigDict(extra="forbid")
    recipe: Literal["MRGP", "VBAgg", "MRGPRN"]
    center_point: bool = False
    kernel: KernelName | None = None
    kernel_f: KernelName | None = None
    kernel_w: Literal[KernelName, "constant"] | None = None
    sources: list[str] | None = None
    tasks: list[str] | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def check(self) -> "ModelSpec":
        """Make the recipe once, so that a wrong setting is known when the file is read."""
        recipe = getattr(models, self.recipe)
        known = [field.name for field in dataclasses.fields(recipe)]
        unknown = [name for name in self._settings() if name not in known]
        if unknown:
            raise ValueError(f"{self.recipe} has no {unknown[0]}=; it has {', '.join(known)}")
        try:
            self.build()
        except TypeError as error:
            raise ValueError(str(error)) from None
        return self

    def build(self) -> Any:
        """Make the recipe."""
        recipe = getattr(models, self.recipe)(**self._settings())
        return models.CenterPoint(recipe) if self.center_point else recipe

    def view(self, data: Dataset) -> Dataset:
        """Return the sources and tasks the model may see."""
        return data.select(source=self.sources, task=self.tasks)

    def _settings(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ("kernel", "kernel_f", "kernel_w")}
        made = {
            name: given if given == "constant" else getattr(kernels, given)()
            for name, given in named.items()
            if given is not None
        }
        return made | self.options


class Quick(BaseModel):
    """The small version that continuous integration runs."""

    model_config = ConfigDict(extra="forbid")
    seeds: int = 2
    variants: list[str]
    models: list[str] | None = None


class Experiment(BaseModel):
    """What an `experiment.toml` says.

    Data are of a `simulator`, repeated over `seeds`, or `recorded`, repeated over the folds or
    sites that there are (the first `seeds` of them, if given). The fits of the first `timed`
    replicates (default: of all) are made twice to be timed.
    """

    model_config = ConfigDict(extra="forbid")
    name: str
    title: str
    simulator: Literal["dependent", "biased", "mixing"] | None = None
    recorded: Literal["inter_task", "inter_task_laqn"] | None = None
    seeds: int | None = None
    timed: int | None = Field(default=None, ge=1)
    quick: Quick
    variants: dict[str, dict[str, Any]]
    models: dict[str, ModelSpec]

    @model_validator(mode="after")
    def check(self) -> "Experiment":
        """Check what several keys must agree on."""
        if (self.simulator is None) == (self.recorded is None):
            raise ValueError("give either simulator or recorded, and not both")
        if self.simulator is not None and self.seeds is None:
            raise ValueError("a simulator needs seeds, the number of them to run by default")
        self.choose("variants", self.quick.variants)
        self.choose("models", self.quick.models)
        return self

    @property
    def replicates(self) -> Replicates:
        """What the experiment is repeated over."""
        return DATA[str(self.simulator or self.recorded)]

    def choose(self, kind: str, names: Sequence[str] | None) -> list[str]:
        """Return the variants or models asked for, or all of them."""
        known = list(getattr(self, kind))
        unknown = [n for n in names or () if n not in known]
        if unknown:
            raise ExperimentError(
                f"{self.name} has no {kind[:-1]} {unknown[0]!r}; it has {', '.join(known)}."
            )
        return list(names) if names else known


def folders() -> list[Path]:
    """Return the places where experiments are looked for, first found first."""
    here = Path(__file__).parent
    places = [Path("experiments"), here / "_experiments", here.parents[1] / "experiments"]
    return [place for place in places if place.is_dir()]


def available() -> dict[str, Experiment]:
    """Return every experiment that can be read, by name."""
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
    """Return an experiment by name, or by the path of its folder."""
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


def run(
    experiment: Experiment,
    *,
    seeds: Sequence[int] | None = None,
    variants: Sequence[str] | None = None,
    model_names: Sequence[str] | None = None,
    quick: bool = False,
    out: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run an experiment and return its summary.

    The summary has, for each variant, model and metric, the mean, sd, median and number of
    replicates: seeds, folds or sites. With `out`, scores by replicate (CSV) and the summary (JSON,
    Markdown) are written to `out/name`.
    """
    start = time.perf_counter()
    progress = progress or Silent()
    small = experiment.quick if quick else None
    chosen_variants = experiment.choose("variants", variants or (small and small.variants))
    chosen_models = experiment.choose("models", model_names or (small and small.models))
    if seeds is None:
        count = small.seeds if small else experiment.seeds
        seeds = None if count is None else range(count)
    noun, load, _ = experiment.replicates
    replicates = experiment.replicates.choose(seeds)
    progress.start(experiment.name, len(chosen_variants) * len(replicates) * len(chosen_models))
    rows: list[dict[str, Any]] = []
    for variant in chosen_variants:
        for place, (number, label) in enumerate(replicates.items()):
            case = load(label, **experiment.variants[variant])
            timed = experiment.timed is None or place < experiment.timed
            for model in chosen_models:
                progress.update(len(rows), f"{variant}, {noun} {label}, {model}")
                scores = score(experiment.models[model], case, number, timed=timed)
                rows.append({"variant": variant, "model": model, noun: label} | scores)
    progress.finish(f"{len(rows)} fits scored")
    summary = {
        "experiment": experiment.name,
        "variants": summarise(rows),
        "seconds": time.perf_counter() - start,
    }
    if out is not None:
        write(out / experiment.name, rows, summary)
    return summary


def score(spec: ModelSpec, case: Simulation | Recording, key: int, *, timed: bool = True) -> Scores:
    """Fit one model to one case and score it.

    Plain names are scores of noisy predictions against held-out observations; names that end in
    `_clean` are scores of the latent prediction against the noise-free function, where it is known.
    `cpu_seconds` is the process time of a second identical fit, when everything is compiled; it is
    left out unless `timed`.
    """
    data = spec.view(case.data)
    fitted = fit(spec.build(), data, key, progress=None)
    seconds = {}
    if timed:
        start = time.process_time()
        fitted = fit(spec.build(), data, key, progress=None)
        seconds = {"cpu_seconds": time.process_time() - start}
    asked = {"task": case.task, "key": key}
    noisy = predict(fitted, case.support, source=case.target, noise=True, **asked)
    found = evaluate_quietly(noisy, case.y)
    scores = {k: float(v) for k, v in found.items() if k not in ("n", "missing")}
    if isinstance(case, Simulation):
        found = evaluate_quietly(predict(fitted, case.support, **asked), case.truth)
        kept = {k: float(v) for k, v in found.items() if k not in ("n", "missing", "mape")}
        scores |= {f"{k}_clean": v for k, v in kept.items()}
    target = (case.target, case.task)
    weights = [w for process, w in fitted.weights.items() if process != target]
    return scores | {"weight": float(np.mean(weights)) if weights else 1.0} | seconds


def evaluate_quietly(prediction: Any, y: np.ndarray) -> Scores:
    """Evaluate without the warning that mape says little near zero."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="mape divides")
        return evaluate(prediction, y)


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Aggregate over replicates: {variant: {model: {metric: {mean, sd, median, n}}}}."""
    summary: dict[str, Any] = {}
    for variant, model, metric, values in _groups(rows):
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        cell = {
            "mean": float(np.mean(values)),
            "sd": sd,
            "median": float(np.median(values)),
            "n": len(values),
        }
        summary.setdefault(variant, {}).setdefault(model, {})[metric] = cell
    return summary


def _groups(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, str, list[float]]]:
    pairs = dict.fromkeys((r["variant"], r["model"]) for r in rows)
    for variant, model in pairs:
        mine = [r for r in rows if (r["variant"], r["model"]) == (variant, model)]
        for metric in _columns(mine):
            if metric not in LABELS:
                yield variant, model, metric, [r[metric] for r in mine if metric in r]


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


SHOWN = ("rmse", "crps", "coverage_95", "rmse_clean", "coverage_95_clean", "width_95_clean")
SHOWN_RECORDED = ("mse", "rmse", "mae", "crps", "coverage_95", "width_95")


def table(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of a summary's main metrics, mean +- sd."""
    cells = [
        (variant, model, metrics)
        for variant, by_model in summary["variants"].items()
        for model, metrics in by_model.items()
    ]
    shown = SHOWN if all(m in metrics for *_, metrics in cells for m in SHOWN) else SHOWN_RECORDED
    rows = []
    for variant, model, metrics in cells:
        scores = [f"{metrics[m]['mean']:.3f} ± {metrics[m]['sd']:.3f}" for m in shown]
        seconds, n = metrics["cpu_seconds"]["mean"], metrics["rmse"]["n"]
        rows.append([variant, model, *scores, f"{seconds:.2f}", str(n)])
    return ["variant", "model", *shown, "cpu s", "n"], rows


def write(folder: Path, rows: Sequence[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Write scores by replicate and the summary into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "scores.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=_columns(rows))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    header, cells = table(summary)
    lines = [header, ["---"] * len(header), *cells]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    (folder / "summary.md").write_text(text + "\n")
