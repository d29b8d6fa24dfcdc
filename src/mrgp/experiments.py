"""Run an experiment folder: data by a simulator, models and variants from its TOML, scores out."""

import contextlib
import csv
import json
import time
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mrgp import datasets, kernels, models
from mrgp.data import Dataset
from mrgp.datasets import Simulation
from mrgp.evaluation import evaluate
from mrgp.inference import Progress, Silent, fit
from mrgp.prediction import predict

FILE = "experiment.toml"
SIMULATORS = {"dependent": datasets.dependent}
Scores = dict[str, float]


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
    """A model of an experiment: recipe and kernel by name, and the sources it may see."""

    model_config = ConfigDict(extra="forbid")
    recipe: Literal["MRGP", "VBAgg"]
    kernel: KernelName | None = None
    sources: list[str] | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    def build(self) -> Any:
        """Make the recipe."""
        chosen = {} if self.kernel is None else {"kernel": getattr(kernels, self.kernel)()}
        return getattr(models, self.recipe)(**chosen, **self.options)

    def view(self, data: Dataset) -> Dataset:
        """Return the sources the model may see."""
        return Dataset([o for o in data if self.sources is None or o.name in self.sources])


class Quick(BaseModel):
    """The small version that continuous integration runs."""

    model_config = ConfigDict(extra="forbid")
    seeds: int = 2
    variants: list[str]


class Experiment(BaseModel):
    """What an `experiment.toml` says."""

    model_config = ConfigDict(extra="forbid")
    name: str
    title: str
    simulator: Literal["dependent"]
    seeds: int
    quick: Quick
    variants: dict[str, dict[str, Any]]
    models: dict[str, ModelSpec]

    def choose(self, kind: str, names: Sequence[str] | None) -> list[str]:
        """Return the variants or models asked for, or all of them."""
        known = list(getattr(self, kind))
        unknown = [n for n in names or () if n not in known]
        if unknown:
            raise ExperimentError(
                f"{self.name} has no {kind[:-1]} {unknown[0]!r}; it has {', '.join(known)}."
            )
        return list(names) if names else known


class ExperimentError(ValueError):
    """An experiment that cannot be found, read or run as asked."""


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
    return {file.parent.name: file.parent for file in reversed(files)}


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
        key = ".".join(str(part) for part in first["loc"])
        raise ExperimentError(f"{folder / FILE}: {key}: {first['msg']}.") from None


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

    The summary has, for each variant, model and metric, the mean, sd, median and number of seeds.
    With `out`, scores by seed (CSV) and the summary (JSON, Markdown) are written to `out/name`.
    """
    start = time.perf_counter()
    progress = progress or Silent()
    chosen_variants = experiment.choose("variants", variants)
    if quick:
        chosen_variants = list(variants) if variants else experiment.quick.variants
    chosen_models = experiment.choose("models", model_names)
    default = experiment.quick.seeds if quick else experiment.seeds
    chosen_seeds = list(range(default)) if seeds is None else list(seeds)
    jobs = [(v, s, m) for v in chosen_variants for s in chosen_seeds for m in chosen_models]
    progress.start(experiment.name, len(jobs))
    rows = []
    for step, (variant, seed, model) in enumerate(jobs):
        progress.update(step, f"{variant}, seed {seed}, {model}")
        simulation = SIMULATORS[experiment.simulator](seed, **experiment.variants[variant])
        scores = score(experiment.models[model], simulation, seed)
        rows.append({"variant": variant, "model": model, "seed": seed} | scores)
    progress.finish(f"{len(jobs)} fits scored")
    summary = {
        "experiment": experiment.name,
        "variants": summarise(rows),
        "seconds": time.perf_counter() - start,
    }
    if out is not None:
        write(out / experiment.name, rows, summary)
    return summary


def score(spec: ModelSpec, simulation: Simulation, key: int) -> Scores:
    """Fit one model to one simulation and score it.

    Plain names are scores of noisy predictions against held-out observations; names that end in
    `_clean` are scores of the latent prediction against the noise-free function. `cpu_seconds` is
    the process time of a second identical fit, when everything is compiled.
    """
    data = spec.view(simulation.data)
    fit(spec.build(), data, key, progress=None)
    start = time.process_time()
    fitted = fit(spec.build(), data, key, progress=None)
    seconds = time.process_time() - start
    asked = {"task": simulation.task, "key": key}
    clean = evaluate_quietly(predict(fitted, simulation.support, **asked), simulation.truth)
    noisy = predict(fitted, simulation.support, source=simulation.target, noise=True, **asked)
    scores = evaluate_quietly(noisy, simulation.y)
    weights = [w for (source, _), w in fitted.weights.items() if source != simulation.target]
    return (
        {k: float(v) for k, v in scores.items() if k not in ("n", "missing")}
        | {f"{k}_clean": float(v) for k, v in clean.items() if k not in ("n", "missing", "mape")}
        | {"weight": float(np.mean(weights)) if weights else 1.0, "cpu_seconds": seconds}
    )


def evaluate_quietly(prediction: Any, y: np.ndarray) -> Scores:
    """Evaluate without the warning that mape says little near zero."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="mape divides")
        return evaluate(prediction, y)


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Aggregate scores over seeds: {variant: {model: {metric: {mean, sd, median, n}}}}."""
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
        for metric in mine[0]:
            if metric not in ("variant", "model", "seed"):
                yield variant, model, metric, [r[metric] for r in mine]


SHOWN = ("rmse", "crps", "coverage_95", "rmse_clean", "coverage_95_clean", "width_95_clean")


def table(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of a summary's main metrics, mean +- sd."""
    header = ["variant", "model", *SHOWN, "cpu s", "n"]
    rows = []
    for variant, by_model in summary["variants"].items():
        for model, metrics in by_model.items():
            cells = [f"{metrics[m]['mean']:.3f} ± {metrics[m]['sd']:.3f}" for m in SHOWN]
            seconds, n = metrics["cpu_seconds"]["mean"], metrics["cpu_seconds"]["n"]
            rows.append([variant, model, *cells, f"{seconds:.2f}", str(n)])
    return header, rows


def write(folder: Path, rows: Sequence[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Write scores by seed and the summary into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "scores.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    header, cells = table(summary)
    lines = [header, ["---"] * len(header), *cells]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    (folder / "summary.md").write_text(text + "\n")
