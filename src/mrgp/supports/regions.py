"""Points, nodes and boxes from arrays, checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrgp.supports.spaces import check_space
from mrgp.supports.support import Boxes, Kind, Nodes, Points, Support


def points(
    x: Any,
    *,
    inputs: Any = None,
    kind: Kind = "mean",
    weights: Any = None,
    space: Any = None,
    covariates: Any = None,
) -> Any:
    """Place each value at one location.

    `x` has shape [n, d]; `inputs` names the columns (a data frame brings its own). With
    `kind="sum"` each point counts `weights` times (default one). `space=("a", "b")` names inputs
    that are directions of one space, with one unit: they share a lengthscale by default. Well-known
    names need no mention (lon and lat, x and y, east and north); `space=()` keeps all inputs apart.
    Degrees are taken as numbers, so that one lengthscale is as long along both; `from_frame` with
    `crs=` makes kilometres of them. `covariates` is a data frame with a row for each point, whose
    columns become further inputs: numbers, and categories where they are text.

    >>> points([[0.0, 51.5], [1.0, 51.4]], inputs=("time", "lat"))
    Points(2 means: time 0 to 1; lat 51.4 to 51.5)
    """
    if inputs is None and hasattr(x, "columns"):
        inputs = tuple(map(str, x.columns))
    x = require_finite(check_coordinates(x, 2, "x", "points"), "x", "points")
    labels = check_labels(inputs, kind, x.shape[1], "points", space)
    made = Points(x, check_multiplier(weights, len(x), kind, "points"), **labels)
    return made if covariates is None else made.with_covariates(covariates)


def nodes(
    x: Any, weights: Any = None, *, inputs: Any = None, kind: Kind = "mean", space: Any = None
) -> Nodes:
    """Let each value be a weighted mean, or a weighted sum, over its own nodes.

    `x` has shape [n, s, d] and `weights` [n, s]. A mean scales the weights of each region to sum
    to one (default: equal weights); a sum takes them as they are (default: one). Regions may have
    different numbers of nodes: lists of different length, or padding of weight zero. `space` is as
    in `points`.

    >>> nodes([[[0.0], [1.0], [2.0]]])
    Nodes(1 mean of 3 nodes: x1 0 to 2, width 2)
    >>> nodes([[[0.0], [1.0], [2.0]], [[4.0]]]).weights[1]
    array([1., 0., 0.])
    """
    x, weights = _padded(x, weights)
    x = check_coordinates(x, 3, "x", "nodes")
    labels = check_labels(inputs, kind, x.shape[2], "nodes", space)
    if x.shape[1] == 0:
        raise ValueError(f"nodes: every region needs at least one node; got shape {x.shape}.")
    given = np.ones(x.shape[:2]) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != x.shape[:2]:
        raise ValueError(
            f"nodes: weights must have shape [n, s] = {x.shape[:2]} to fit x; got {given.shape}."
        )
    if not np.isfinite(given).all():
        raise ValueError("nodes: weights must be finite; give padding nodes the weight 0.")
    empty = ~(given != 0).any(1)
    if empty.any():
        raise ValueError(
            f"nodes: all weights are zero in {empty.sum()} of {len(empty)} regions, first in row"
            f" {np.argmax(empty)}. Drop those regions."
        )
    # Padding takes the coordinates of a used node, since 0 * nan = nan (theory 1.1).
    first = np.take_along_axis(x, np.argmax(given != 0, 1)[:, None, None], axis=1)
    x = require_finite(np.where((given != 0)[:, :, None], x, first), "x", "nodes")
    if kind == "mean":
        total = given.sum(1, keepdims=True)
        if np.any(np.abs(total) <= 1e-12 * np.abs(given).sum(1, keepdims=True)):
            raise ValueError('nodes: weights of a mean must not sum to zero; use kind="sum".')
        given = given / total
    return Nodes(x, given, **labels)


def _padded(x: Any, weights: Any) -> tuple[Any, Any]:
    """Bring lists of nodes of different length to the longest, with nodes of weight zero."""
    if not isinstance(x, list | tuple) or len({np.shape(part)[:1] for part in map(_array, x)}) < 2:
        return x, weights
    parts = [check_coordinates(part, 2, f"x[{i}]", "nodes") for i, part in enumerate(x)]
    counts = [len(part) for part in parts]
    empty = [i for i, count in enumerate(counts) if count == 0]
    if empty:
        raise ValueError(f"nodes: every region needs at least one node; x[{empty[0]}] has none.")
    given = [np.ones(count) for count in counts] if weights is None else list(map(_array, weights))
    if [np.shape(w) for w in given] != [(count,) for count in counts]:
        raise ValueError(
            f"nodes: weights must have as many numbers as x has nodes, {_few(counts)} by region;"
            f" got {_few([np.size(w) for w in given])}."
        )
    most = max(counts)
    added = [most - count for count in counts]
    # Padding repeats a node: it has a place, and counts for nothing.
    made = [np.vstack([p, np.repeat(p[:1], n, 0)]) for p, n in zip(parts, added, strict=True)]
    return np.stack(made), np.stack([np.pad(w, (0, n)) for w, n in zip(given, added, strict=True)])


def _array(part: Any) -> np.ndarray:
    try:
        return np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        return np.asarray(part, dtype=object)


def _few(counts: list[int]) -> str:
    return ", ".join(map(str, counts[:6])) + (", ..." if len(counts) > 6 else "")


def boxes(
    lower: Any,
    upper: Any,
    *,
    inputs: Any = None,
    kind: Kind = "mean",
    weights: Any = None,
    space: Any = None,
    covariates: Any = None,
) -> Any:
    """Let each value be the mean, or the integral, over an axis-aligned box.

    `lower` and `upper` have shape [n, d]; sides of zero width are allowed and do not count
    towards the volume. With `kind="sum"` a region's integral is multiplied by `weights` (default
    one). `space` and `covariates` are as in `points`.

    >>> boxes([[0.0, 0.0]], [[1.0, 2.0]], inputs=("lon", "lat"))
    Boxes(1 mean: lon 0 to 1, width 1; lat 0 to 2, width 2)
    """
    made = _boxes(lower, upper, 2, inputs, kind, weights, "boxes", space)
    return made if covariates is None else made.with_covariates(covariates)


def intervals(
    start: Any, end: Any, *, inputs: Any = None, kind: Kind = "mean", weights: Any = None
) -> Boxes:
    """Let each value be the mean, or the integral, over an interval of one input.

    >>> intervals([0.0, 24.0], [24.0, 48.0], inputs="hour")
    Boxes(2 means: hour 0 to 48, width 24)
    """
    return _boxes(start, end, 1, inputs, kind, weights, "intervals")


def _boxes(
    lower: Any,
    upper: Any,
    ndim: int,
    inputs: Any,
    kind: Kind,
    weights: Any,
    where: str,
    space: Any = None,
) -> Boxes:
    low, high = ("lower", "upper") if ndim == 2 else ("start", "end")
    lower = check_coordinates(lower, ndim, low, where)
    upper = check_coordinates(upper, ndim, high, where)
    if lower.shape != upper.shape:
        raise ValueError(
            f"{where}: {low} and {high} must have one shape; got {lower.shape} and {upper.shape}."
        )
    require_finite(lower, low, where)
    require_finite(upper, high, where)
    if ndim == 1:
        lower, upper = lower[:, None], upper[:, None]
    wrong = (upper < lower).any(1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{where}: {high} is below {low} in {wrong.sum()} of {len(wrong)} rows, first in row"
            f" {row} ({low} {lower[row]}, {high} {upper[row]}). Swap them."
        )
    labels = check_labels(inputs, kind, lower.shape[1], where, space)
    multiplier = check_multiplier(weights, len(lower), kind, where)
    width = upper - lower
    volume = np.where(width > 0, width, 1.0).prod(1)
    total = volume * multiplier if kind == "sum" else multiplier
    return Boxes(lower, upper, total, tuple((width == 0).all(0).tolist()), **labels)


def join_nodes(supports: Sequence[Support]) -> Nodes:
    """Join nodes of supports that are solid along the same inputs, padded to one number each."""
    most, first = max(support.nodes_per_region for support in supports), supports[0]
    x, weights = [], []
    for atoms in (support.atoms() for support in supports):
        pad = (0, most - atoms.weights.shape[1])
        x.append(np.pad(atoms.lower, ((0, 0), pad, (0, 0)), mode="edge"))
        weights.append(np.pad(atoms.weights, ((0, 0), pad)))
    return Nodes(np.concatenate(x), np.concatenate(weights), wide=first.solid, **first.labels)


def check_inputs(names: Any, dimension: int, where: str) -> tuple[str, ...] | None:
    """Return input names as a tuple, or say why they do not fit."""
    if names is None:
        return None
    names = (names,) if isinstance(names, str) else tuple(map(str, names))
    if len(names) != dimension or len(set(names)) != len(names):
        raise ValueError(
            f"{where}: inputs= needs one name for each of the {dimension} columns, all different;"
            f" got {names}."
        )
    return names


def check_labels(
    inputs: Any, kind: Any, dimension: int, where: str, space: Any = None
) -> dict[str, Any]:
    """Return names of the inputs, the kind of aggregate and spaces, or say which there are."""
    if kind not in ("mean", "sum"):
        raise ValueError(f'{where}: kind= is "mean" or "sum"; got {kind!r}.')
    names = check_inputs(inputs, dimension, where)
    known = names or tuple(f"x{d + 1}" for d in range(dimension))
    return {"inputs": names, "kind": kind, "space": check_space(space, known, where)}


def check_multiplier(weights: Any, n: int, kind: Kind, where: str) -> np.ndarray:
    """Return one factor for each region of a sum, or say why those given do not fit."""
    if weights is None:
        return np.ones(n)
    if kind == "mean":
        raise ValueError(
            f'{where}: one weight a region cancels in a mean; use kind="sum" for totals, or'
            " nodes(x, weights) for a weighted mean."
        )
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all():
        raise ValueError(
            f"{where}: weights must be {n} finite numbers, one a region; got shape {weights.shape}."
        )
    return weights


def check_coordinates(values: Any, ndim: int, name: str, where: str) -> np.ndarray:
    """Return finite float64 coordinates of the wanted rank, or say what came instead."""
    shapes = {1: "[n]", 2: "[n, d]", 3: "[n, s, d]"}
    if np.ma.is_masked(values):
        raise ValueError(
            f"{where}: {name} has masked coordinates. Drop those rows or fill them in."
        )
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{where}: {name} has rows of different length.") from None
    if array.dtype.kind not in "fiub":
        dates = (
            " Convert dates to hours or days since a start." if array.dtype.kind in "MmO" else ""
        )
        raise TypeError(f"{where}: {name} must be numbers; got {array.dtype}.{dates}")
    array = array.astype(np.float64)
    if array.ndim != ndim:
        hint = " For one input give x[:, None]." if (ndim, array.ndim) == (2, 1) else ""
        raise ValueError(
            f"{where}: {name} must have shape {shapes[ndim]}; got {array.shape}.{hint}"
        )
    if ndim > 1 and array.shape[-1] == 0:
        raise ValueError(f"{where}: {name} has no input columns; got shape {array.shape}.")
    return array


def require_finite(array: np.ndarray, name: str, where: str) -> np.ndarray:
    """Refuse NaN and infinite coordinates, saying how many and where the first is."""
    bad = np.atleast_1d(~np.isfinite(array).all(axis=tuple(range(1, array.ndim))))
    if bad.any():
        raise ValueError(
            f"{where}: {name} has NaN or infinite coordinates in {bad.sum()} of {len(bad)} rows,"
            f" first in row {np.argmax(bad)}. Drop those rows or fill them in."
        )
    return array


def require_supports(values: Sequence[Any], where: str) -> None:
    """Refuse what is no support."""
    for item in values:
        if not isinstance(item, Support):
            raise TypeError(f"{where} takes supports, as {where}(a, b); got {type(item).__name__}.")
