"""An estimator for scikit-learn: tables in, the field and its uncertainty out."""

# ruff: noqa: N803 - scikit-learn calls a table X, also by keyword.

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from mrgp import prediction, selection
from mrgp.data import Dataset, Observations
from mrgp.io.sides import support_of
from mrgp.models import MRGP
from mrgp.supports import Side, Support

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.metrics import r2_score
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        f"mrgp.sklearn needs scikit-learn 1.6 or later ({error}): pip install 'mrgp[sklearn]'."
    ) from None

__all__ = ["MRGPRegressor"]

WHERE = "MRGPRegressor"
LARGEST_SEED = 2**31 - 1

Table = Float[np.ndarray, "n features"]
Inputs = list[tuple[str, int, int]]
"""Name of each input, and its column, or those of its lower and upper side."""


class MRGPRegressor(RegressorMixin, BaseEstimator):
    """A multi-resolution GP as a scikit-learn regressor.

    Rows of X are points, columns the inputs. `model` is a recipe for one task (default:
    `mrgp.MRGP()`). `regions` maps the name of an input to the pair of columns, by name or by
    number, that are its lower and upper sides: y is then the mean over a box, and a row whose two
    sides are equal is a point along that input. `likelihood` is how values scatter, a word or a
    value such as `mrgp.Poisson()`, for all or as a mapping of sources; the link is the model's.
    `weights`, `optimiser` and `key` are those of `mrgp.fit`. Inputs need no scaling; kernels are
    in their units, and go by the columns' names.

    After `fit`, `fit_` is the `mrgp.Fit`, with `fit_.summary()`; `n_features_in_` and, for data
    frames, `feature_names_in_` are the columns.

    >>> hours = [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
    >>> hourly = MRGPRegressor(regions={"hour": (0, 1)}).fit(hours, [3.0, 4.0, 4.5, 4.0])
    >>> mean, sd = hourly.predict([[1.5, 1.5]], return_std=True)
    >>> mean.shape, hourly.fit_.inputs
    ((1,), ('hour',))
    """

    def __init__(
        self,
        model: Any = None,
        *,
        regions: Any = None,
        likelihood: Any = "gaussian",
        weights: Any = None,
        optimiser: Any = None,
        key: Any = 0,
    ):
        self.model = model
        self.regions = regions
        self.likelihood = likelihood
        self.weights = weights
        self.optimiser = optimiser
        self.key = key

    def fit(
        self, X: Any, y: Any, sources: Any = None, exposure: Any = None, trials: Any = None
    ) -> "MRGPRegressor":
        """Fit the model to a table.

        `sources` has the label of each row's source. Every source has a noise of its own, and a
        bias where the model gives it one, as `mrgp.MRGP(bias="offset", target=...)` does. Sources
        are in the order of their labels; without `target=` the first is the target. `exposure`
        multiplies what each row sees of the field, `trials` are those of a binomial: one number,
        or one for each row.

        >>> x, y = [[0.0], [1.0], [0.5], [1.5]], [0.0, 1.0, 2.5, 3.2]
        >>> model = MRGP(bias="offset", target="sensor")
        >>> fused = MRGPRegressor(model).fit(x, y, sources=["sensor", "sensor", "sat", "sat"])
        >>> fused.fit_.sources
        ('sat', 'sensor')
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        groups = _groups(sources, len(X))
        inputs = _inputs(self.regions, getattr(self, "feature_names_in_", None), X.shape[1])
        support = _support(inputs, X)
        scatter = _likelihoods(self.likelihood, groups)
        beside = {"exposure": exposure, "trials": trials}
        data = Dataset(
            Observations(
                support[rows],
                y[rows],
                name=source or "source",
                likelihood=scatter[source],
                **{name: _own(given, rows, len(X), name) for name, given in beside.items()},
            )
            for source, rows in groups.items()
        )
        model = MRGP() if self.model is None else self.model
        settings = {"optimiser": self.optimiser, "progress": None}
        self.fit_ = selection.fit(model, data, self.key, self.weights, **settings)
        self._inputs = inputs
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        sources: Any = None,
        exposure: Any = None,
        trials: Any = None,
    ) -> Any:
        """Predict the field: its mean, with sd or covariance if asked for.

        The uncertainty is that of the field, without the noise of new observations. With
        `sources`, one label or one for each row, it is what those sources would report, bias
        included, without noise; covariances are of one source. With `exposure`, or `trials`, one
        number or one for each row, it is the field times that: the counts that are expected.

        >>> MRGPRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]).predict([[1.5]]).shape
        (1,)
        """
        if return_std and return_cov:
            raise RuntimeError(
                f"{WHERE}: predict returns an sd or a covariance; got return_std=True and"
                " return_cov=True. Ask for one: the variances are the covariance's diagonal."
            )
        support = self.to_support(X)
        size = _size({"exposure": exposure, "trials": trials}, len(support))
        if return_cov:
            pred = self._joint(X, sources)
            return pred.mean * size, pred.covariance * np.outer(size, size)
        mean, std = np.empty(len(support)), np.empty(len(support))
        for source, rows in _groups(sources, len(support)).items():
            pred = prediction.predict(self.fit_, support[rows], source=source, key=self.key)
            mean[rows], std[rows] = pred.mean * size[rows], pred.std * size[rows]
        return (mean, std) if return_std else mean

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, sources: Any = None
    ) -> Float[np.ndarray, "n draws"]:
        """Draw the field jointly at the rows of X, without noise; one column is one draw.

        >>> gp = MRGPRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
        >>> gp.sample_y([[0.5], [1.5]], n_samples=3).shape
        (2, 3)
        """
        seed = random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(LARGEST_SEED)
        return self._joint(X, sources).sample(int(seed), n_samples).T

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sources: Any = None,
        exposure: Any = None,
        trials: Any = None,
    ) -> float:
        """Return R squared of `predict` with the same arguments.

        >>> gp = MRGPRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
        >>> gp.score([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]) <= 1.0
        True
        """
        mean = self.predict(X, sources=sources, exposure=exposure, trials=trials)
        return float(r2_score(y, mean, sample_weight=sample_weight))

    def to_support(self, X: Any) -> Support:
        """Return the points or boxes that rows of a table are, for `mrgp.predict(self.fit_, ...)`.

        >>> gp = MRGPRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
        >>> gp.to_support([[0.5], [1.5]])
        Points(2 means: x1 0.5 to 1.5)
        """
        check_is_fitted(self, "fit_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return _support(self._inputs, X)

    def _joint(self, X: Any, sources: Any) -> prediction.Prediction:
        support = self.to_support(X)
        asked = list(_groups(sources, len(support)))
        if len(asked) > 1:
            raise ValueError(
                f"{WHERE}: covariances and draws are of one source, or of the field; got sources="
                f" with {asked}. Ask for one source at a time."
            )
        return prediction.predict(self.fit_, support, source=asked[0], key=self.key, joint=True)


def _inputs(regions: Any, names: Any, count: int) -> Inputs:
    """Return the inputs that columns stand for, each where its column, or its lower side, is."""
    named = [f"x{j + 1}" for j in range(count)] if names is None else list(map(str, names))
    sides = _sides(regions, None if names is None else named, count)
    used = [column for _, *pair in sides for column in pair]
    if len(set(used)) != len(used):
        raise ValueError(f"{WHERE}: regions= has a column twice: {dict(regions)!r}.")
    alone = [(named[j], j, j) for j in range(count) if j not in used]
    inputs = sorted([*alone, *sides], key=lambda one: one[1])
    found = tuple(name for name, _, _ in inputs)
    if len(set(found)) != len(found):
        raise ValueError(
            f"{WHERE}: each input needs a name of its own; the columns and regions= give"
            f" {found}. Rename one."
        )
    return inputs


def _sides(regions: Any, names: Any, count: int) -> Inputs:
    """Return the inputs that have two columns."""
    if regions is not None and not isinstance(regions, Mapping):
        raise TypeError(
            f"{WHERE}: regions= maps inputs to pairs of columns, as {{'time': ('start', 'end')}};"
            f" got {regions!r}."
        )
    sides = []
    for name, pair in (regions or {}).items():
        if isinstance(pair, str) or np.shape(pair) != (2,):
            raise ValueError(
                f"{WHERE}: regions= needs two columns for {name!r}, its lower and upper side; got"
                f" {pair!r}."
            )
        lower, upper = (_column(column, names, count) for column in pair)
        sides.append((str(name), lower, upper))
    return sides


def _column(column: Hashable, names: Any, count: int) -> int:
    """Return the number of a column given by name or by number."""
    if isinstance(column, int | np.integer) and -count <= column < count:
        return int(column) % count
    if names is not None and column in names:
        return names.index(column)
    known = f"the columns are {names}" if names else f"there are {count} columns without names"
    raise ValueError(f"{WHERE}: regions= has no column {column!r} to take; {known}.")


def _support(inputs: Inputs, X: Table) -> Support:
    """Return what the rows of a table are: points, or boxes where an input has two columns."""
    sides = [Side(name, X[:, lower], X[:, upper]) for name, lower, upper in inputs]
    for side in sides:
        wrong = side.upper < side.lower
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{WHERE}: the upper side of {side.name!r} is below the lower in {wrong.sum()} of"
                f" {len(X)} rows, first in row {row} (from {side.lower[row]:g} to"
                f" {side.upper[row]:g}). Swap the two in regions=, and leave sides out of scalers:"
                " they move each column by itself."
            )
    return support_of(sides, "mean")


def _likelihoods(given: Any, groups: Mapping[str | None, Any]) -> dict[str | None, Any]:
    """Return the likelihood of each source: the one of all, or those of a mapping."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(groups, given)
    strange = [str(name) for name in given if str(name) not in groups]
    if strange:
        raise ValueError(
            f"{WHERE}: likelihood= names {strange[0]!r}, which is no source; the labels of sources="
            f" are {[name for name in groups if name is not None]}."
        )
    named = {str(name): value for name, value in given.items()}
    return {name: named.get(str(name), "gaussian") for name in groups}


def _own(given: Any, rows: Int[np.ndarray, " k"], count: int, name: str) -> Any:
    """Return what rows have of an argument that is one number, or one for each row."""
    if given is None:
        return None
    values = np.asarray(given, np.float64)
    if values.shape not in ((), (count,)):
        raise ValueError(
            f"{WHERE}: {name}= is one number, or one for each of the {count} rows; got shape"
            f" {values.shape}."
        )
    return np.broadcast_to(values, (count,))[rows]


def _size(beside: Mapping[str, Any], count: int) -> Float[np.ndarray, " n"]:
    """Return how many times the field each row is asked for: its exposure, or its trials."""
    given = [_own(values, np.arange(count), count, name) for name, values in beside.items()]
    return np.prod([np.ones(count), *(part for part in given if part is not None)], axis=0)


def _groups(sources: Any, count: int) -> dict[str | None, Int[np.ndarray, " _"]]:
    """Return the rows of each source; without labels, all rows are of none."""
    if sources is None:
        return {None: np.arange(count)}
    labels = np.asarray(sources, dtype=object)
    if labels.ndim == 0:
        labels = np.full(count, labels.item(), dtype=object)
    if labels.shape != (count,):
        raise ValueError(
            f"{WHERE}: sources= needs a label for each of the {count} rows; got shape"
            f" {labels.shape}."
        )
    missing = np.asarray(pd.isna(labels))
    if missing.any():
        raise ValueError(
            f"{WHERE}: sources= has no label in {missing.sum()} of {count} rows, first in row"
            f" {np.argmax(missing)}. Name the source of every row."
        )
    texts = labels.astype(str)
    return {str(label): np.flatnonzero(texts == label) for label in np.unique(texts)}
