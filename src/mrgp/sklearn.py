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
    sides are equal is a point along that input. `weights`, `optimiser` and `key` are those of
    `mrgp.fit`. Inputs need no scaling; kernels are in their units, and go by the columns' names.

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
        weights: Any = None,
        optimiser: Any = None,
        key: Any = 0,
    ):
        self.model = model
        self.regions = regions
        self.weights = weights
        self.optimiser = optimiser
        self.key = key

    def fit(self, X: Any, y: Any, sources: Any = None) -> "MRGPRegressor":
        """Fit the model to a table.

        `sources` has the label of each row's source. Every source has a noise of its own, and a
        bias where the model gives it one, as `mrgp.MRGP(bias="offset", target=...)` does. Sources
        are in the order of their labels; without `target=` the first is the target.

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
        parts = [(support[rows], y[rows], source) for source, rows in groups.items()]
        data = Dataset(Observations(at, seen, name=name or "source") for at, seen, name in parts)
        model = MRGP() if self.model is None else self.model
        settings = {"optimiser": self.optimiser, "progress": None}
        self.fit_ = selection.fit(model, data, self.key, self.weights, **settings)
        self._inputs = inputs
        return self

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, sources: Any = None
    ) -> Any:
        """Predict the field: its mean, with sd or covariance if asked for.

        The uncertainty is that of the field, without the noise of new observations. With
        `sources`, one label or one for each row, it is what those sources would report, bias
        included, without noise; covariances are of one source.

        >>> MRGPRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]).predict([[1.5]]).shape
        (1,)
        """
        if return_std and return_cov:
            raise RuntimeError(
                f"{WHERE}: predict returns an sd or a covariance; got return_std=True and"
                " return_cov=True. Ask for one: the variances are the covariance's diagonal."
            )
        if return_cov:
            pred = self._joint(X, sources)
            return pred.mean, pred.covariance
        support = self.to_support(X)
        mean, std = np.empty(len(support)), np.empty(len(support))
        for source, rows in _groups(sources, len(support)).items():
            pred = prediction.predict(self.fit_, support[rows], source=source, key=self.key)
            mean[rows], std[rows] = pred.mean, pred.std
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

    def score(self, X: Any, y: Any, sample_weight: Any = None, sources: Any = None) -> float:
        """Return R squared of `predict(X, sources=sources)`.

        >>> gp = MRGPRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
        >>> gp.score([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]) <= 1.0
        True
        """
        return float(r2_score(y, self.predict(X, sources=sources), sample_weight=sample_weight))

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
