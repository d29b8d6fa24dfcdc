"""Compare models by cross-validation, on the same folds, with standard errors."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mrgp.data import Dataset
from mrgp.evaluation import evaluate_quietly
from mrgp.inference import FitError
from mrgp.inference.progress import as_progress
from mrgp.prediction import predict_values
from mrgp.selection.folds import make_folds
from mrgp.selection.targets import target_of
from mrgp.weighting import fit_weighted

SCORES = ("crps", "rmse", "mae", "nlpd", "coverage_95", "width_95")
BY = ("crps", "rmse", "mae", "nlpd")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Scores of models on the folds of one source's values.

    `scores` has a row for each model and fold, `failed` why a model has none, `by` is the score
    that ranks. `str()` of a comparison is its ranked table.

    >>> import pandas as pd
    >>> rows = [("a", 0, 2.0), ("a", 1, 3.0), ("b", 0, 1.0), ("b", 1, 2.5)]
    >>> scores = pd.DataFrame(rows, columns=["model", "fold", "crps"]).assign(
    ...     **{name: 0.0 for name in SCORES if name != "crps"}
    ... )
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
        means: Any = self.scores.groupby("model")[list(SCORES)].mean()
        behind = wide[order].sub(wide[order[0]], axis=0)
        root = np.sqrt(len(wide))
        spread = {f"{self.by}_se": wide[order].std(ddof=1) / root}
        spread |= {"behind": behind.mean(), "behind_se": behind.std(ddof=1) / root}
        return means.loc[order].assign(**spread)

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
) -> Comparison:
    """Cross-validate models on the same folds of one source, and rank them.

    `models` are recipes by name, or a list of them. The values of `target`, a source or a pair
    (source, task) (default: the first task's of the finest support), are held out fold by fold,
    predicted with their noise, and scored; all other sources stay. `folds` is "random", "site",
    "time" or a label for each value, and `number` how many folds there are. A model that fails on
    a fold has no scores, and `failed` has the reason. `weights` is passed to `fit`.

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
    if by not in BY:
        raise ValueError(f"compare: by= is one of {BY}; got {by!r}.")
    process = _process(data, target)
    held = make_folds(data[process], folds, number, key)
    shown, rows, failed = as_progress(progress), [], {}
    count = int(held.max()) + 1
    shown.start("compare", count * len(named))
    for fold in range(count):
        train, test = split(data, process, held == fold)
        for place, (name, model) in enumerate(named.items()):
            if name not in failed:
                try:
                    rows.append(
                        {"model": name, "fold": fold} | score(model, train, test, key, weights)
                    )
                except (FitError, ValueError, TypeError) as error:
                    failed[name] = f"fold {fold}: {error}"
            shown.update(fold * len(named) + place + 1, f"fold {fold}, {name}")
    shown.finish(f"{count} folds, {len(named)} models")
    kept = [row for row in rows if row["model"] not in failed]
    if not kept:
        raise ValueError(f"compare: no model could be scored. {_listed(failed)}")
    words = folds if isinstance(folds, str) else "labels"
    return Comparison(pd.DataFrame(kept), failed, by, process, words)


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


def _process(data: Any, target: Any) -> tuple[str, str]:
    if not isinstance(data, Dataset):
        raise TypeError(f"compare takes a Dataset as second argument; got {type(data).__name__}.")
    return target_of(data, target)


def split(data: Dataset, process: tuple[str, str], held: np.ndarray) -> tuple[Dataset, Any]:
    """Return the data without some values of a process, and those values."""
    whole = data[process]
    train = [o if o.process != process else o[np.flatnonzero(~held)] for o in data]
    return Dataset(train), whole[np.flatnonzero(held)]


def score(model: Any, train: Dataset, test: Any, key: int, weights: Any) -> dict[str, float]:
    """Fit a model, predict values of a source that were held out, and score them."""
    fitted = fit_weighted(model, train, key=key, weights=weights, progress=None)
    found = evaluate_quietly(predict_values(fitted, test, key), test.y)
    return {name: found[name] for name in SCORES} | {"n": int(found["n"])}


def _listed(failed: Mapping[str, str]) -> str:
    return " ".join(f"{name}: {reason}" for name, reason in failed.items())
