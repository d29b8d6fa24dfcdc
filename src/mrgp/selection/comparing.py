"""Compare models by cross-validation, on the same folds, with standard errors."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mrgp._cluster import team
from mrgp.data import Dataset, require_in_memory
from mrgp.evaluation import BRIEF, RANKING, attempt
from mrgp.inference import FitError
from mrgp.inference.progress import as_progress
from mrgp.models.deep import by_size
from mrgp.selection.folds import make_folds
from mrgp.weighting import fit_weighted

FAILURES = (FitError, ValueError, TypeError)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Scores of models on the folds of one source's values.

    `scores` has a row for each model and fold, `failed` why a model has none, `by` is the score
    that ranks. `str()` of a comparison is its ranked table.

    >>> import pandas as pd
    >>> rows = [("a", 0, 2.0), ("a", 1, 3.0), ("b", 0, 1.0), ("b", 1, 2.5)]
    >>> scores = pd.DataFrame(rows, columns=["model", "fold", "crps"])
    >>> found = Comparison(scores, {}, "crps", ("sensors", "no2"), "random")
    >>> found.best, float(found.table.loc["a", "behind"])
    ('b', 0.75)
    """

    scores: Any
    failed: Mapping[str, str]
    by: str
    target: tuple[str, str]
    folds: str

    @property
    def table(self) -> Any:
        """The models, best first: means over folds, standard errors, and distance from the best.

        `behind` is the mean of a model's score less the best one's, fold by fold, and
        `behind_se` its standard error: folds that are hard are hard for all.
        """
        wide: Any = self.scores.pivot(index="fold", columns="model", values=self.by)
        order = wide.mean().sort_values().index
        shown = self.scores.columns.intersection([self.by, *BRIEF])
        means: Any = self.scores.groupby("model")[list(shown)].mean()
        behind = wide.sub(wide[order[0]], axis=0)
        spread = {"behind": behind.mean(), "behind_se": behind.sem()}
        return means.loc[order].assign(**{f"{self.by}_se": wide.sem()}, **spread)

    @property
    def best(self) -> str:
        """The name of the model with the lowest score."""
        return str(self.table.index[0])

    def __str__(self) -> str:
        source, task = self.target
        count = self.scores["fold"].nunique()
        text = self.table.to_string(float_format=lambda value: f"{value:.4g}")
        title = f"{count} folds ({self.folds}) of source {source!r}, task {task!r}, by {self.by}:"
        lost = [f"{name} has no scores: {reason}" for name, reason in self.failed.items()]
        return "\n".join([title, text, *lost])


def compare(
    models: Any,
    data: Any,
    folds: Any = "random",
    *,
    number: int = 5,
    target: Any = None,
    by: str = "crps",
    weights: Any = None,
    key: int = 0,
    progress: Any = "auto",
    workers: int | None = None,
    scheduler: Any = None,
) -> Comparison:
    """Cross-validate models on the same folds of one source, and rank them.

    `models` are recipes by name, or a list of them. The values of `target`, a source or a pair
    (source, task) (default: the first task's of the finest support), are held out fold by fold,
    predicted with their noise, and scored; all other sources stay. `folds` is "random", "site",
    "time" or a label for each value, and `number` how many folds there are. A model that fails on
    a fold has no scores, and `failed` has the reason. `weights` is passed to `fit`.

    Folds and models are fitted one after another, or at once: by so many `workers`, processes of
    this machine with one thread each, or by those of a Dask cluster, whose `scheduler` is its
    client or its address. Scores are the same; a worker that is lost costs the fits that it had.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 6.0, 24)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="sensors")
    >>> found = mrgp.compare({"smooth": mrgp.MRGP(mrgp.RBF()), "rough": mrgp.MRGP(mrgp.Matern12())},
    ...                      mrgp.Dataset([seen]), number=3, progress=None)
    >>> found.best
    'smooth'
    """
    import pandas as pd

    named = _named(models)
    if by not in RANKING:
        raise ValueError(f"compare: by= is one of {RANKING}; got {by!r}.")
    if not isinstance(data, Dataset):
        raise TypeError(f"compare takes a Dataset as second argument; got {type(data).__name__}.")
    require_in_memory(data)
    process = target_of(data, target)
    held = make_folds(data[process], folds, number, key)
    shown, number = as_progress(progress), int(held.max()) + 1
    tried = _Tried(data, process, held, named, key, weights)
    found: dict[tuple[int, str], Any] = {}

    def wanted() -> Iterator[tuple[int, str]]:
        # What failed on an earlier fold has no scores, and is not tried on.
        for fold, name in itertools.product(range(number), named):
            if not any(isinstance(found.get((f, name)), str) for f in range(fold)):
                yield fold, name

    shown.start("compare", number * len(named))
    with team(scheduler, workers, "compare: ") as everyone:
        for _, (fold, name, scores) in everyone.spread(_try, tried, wanted()):
            found[fold, name] = scores
            shown.update(len(found), f"fold {fold}, {name}")
    shown.finish(f"{number} folds, {len(named)} models")
    failed: dict[str, str] = {}
    for fold, name in sorted(found, key=lambda trial: trial[0]):
        if isinstance(found[fold, name], str):
            failed.setdefault(name, f"fold {fold}: {found[fold, name]}")
    kept = [
        {"model": name, "fold": fold} | found[fold, name]
        for fold, name in itertools.product(range(number), named)
        if name not in failed
    ]
    if not kept:
        reasons = " ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise ValueError(f"compare: no model could be scored. {reasons}")
    words = folds if isinstance(folds, str) else "labels"
    return Comparison(pd.DataFrame(kept), failed, by, process, words)


@dataclasses.dataclass(frozen=True, eq=False)
class _Tried:
    """What all trials share: the data, which values each fold holds out, and the models."""

    data: Dataset
    process: tuple[str, str]
    held: Any
    models: dict[str, Any]
    key: int
    weights: Any


def _try(tried: _Tried, trial: tuple[int, str]) -> tuple[int, str, dict[str, float] | str]:
    """Return the scores of a model on a fold, or why it has none."""
    fold, name = trial
    train, test = split(tried.data, tried.process, tried.held == fold)
    try:
        return fold, name, scores_of(tried.models[name], train, test, tried.key, tried.weights)
    except FAILURES as error:
        return fold, name, str(error)


def _named(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        found = {str(name): model for name, model in models.items()}
    elif isinstance(models, Sequence) and not isinstance(models, str):
        found = {}
        for model in models:
            name = model if isinstance(model, str) else type(model).__name__
            alike = sum(known.split("-")[0] == name for known in found)
            found[f"{name}-{alike + 1}" if alike else name] = model
    else:
        raise TypeError(
            "compare: models= is a mapping from names to recipes, or a list of recipes; got"
            f" {type(models).__name__}."
        )
    if not found:
        raise ValueError("compare: models= is empty; give one recipe or more.")
    return found


def target_of(data: Dataset, target: Any = None) -> tuple[str, str]:
    """Return the process to predict: the one named, or the first task's of the finest support."""
    if target is not None:
        return data[tuple(target) if isinstance(target, list) else target].process
    task = data.tasks[0]
    return by_size(data, task)[0], task


def split(data: Dataset, process: tuple[str, str], held: np.ndarray) -> tuple[Dataset, Any]:
    """Return the data without some values of a process, and those values."""
    train = [o if o.process != process else o[np.flatnonzero(~held)] for o in data]
    return Dataset(train), data[process][np.flatnonzero(held)]


def scores_of(
    model: Any, train: Dataset, test: Any, key: int, weights: Any, progress: Any = None
) -> dict[str, float]:
    """Fit a model, predict values of a source that were held out, and score them."""
    settings = {"key": key, "weights": weights, "progress": progress}
    return attempt(lambda: fit_weighted(model, train, **settings), test, key).scores
