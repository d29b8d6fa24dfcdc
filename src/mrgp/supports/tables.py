"""Covariates that come with the rows of a table: numbers, and categories with their code book."""

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.supports.covariates import Column, Field
from mrgp.supports.product import Products, of_parts
from mrgp.supports.regions import check_inputs
from mrgp.supports.support import Points, Rectangular, Support, like

NONE = -1.0
"""The code of no category, which has no effect."""

Values = Float[np.ndarray, "n c"]


def with_rows(support: Support, table: Any, where: str = "with_covariates") -> Support:
    """Add the columns of a table, one row for each region, as further inputs.

    Text and categorical columns are categories, coded by their place in the sorted `levels`.

    >>> import pandas as pd
    >>> from mrgp import points
    >>> made = with_rows(points([[0.0], [1.0]]), pd.DataFrame({"type": ["road", "park"]}))
    >>> made.x[:, 1], made.categories
    (array([1., 0.]), {1: ('park', 'road')})
    """
    columns = _columns_of(table, len(support), where)
    fields = tuple(Field((name,), (), Column(levels)) for name, (_, levels) in columns.items())
    values = np.column_stack([values for values, _ in columns.values()])
    return _appended(support, fields, values, where)


def neutral(support: Support, fields: tuple[Field, ...] | None) -> Support:
    """Give a support the covariates that it lacks, those of tables at values without effect.

    >>> from mrgp import points
    >>> field = Field(("type",), (), Column(("park", "road"), NONE))
    >>> neutral(points([[0.0]], inputs="x"), (field,)).x
    array([[ 0., -1.]])
    """
    for field in fields or ():
        if field.names[0] in support.input_names:
            continue
        if not isinstance(field.source, Column):
            support = field.extend(support)
        else:
            values = np.full((len(support), 1), field.source.neutral)
            support = _appended(support, (field,), values, "covariates")
    return support


def recoded(support: Support, known: tuple[Field, ...] | None, where: str) -> Support:
    """Write the columns that came with a support in the code book of others, such as a fit's.

    >>> from mrgp import points
    >>> road = points([[0.0]], covariates={"type": ["road"]})
    >>> recoded(road, (Field(("type",), (), Column(("park", "road"), NONE)),), "predict").x
    array([[0., 1.]])
    """
    book = {f.names[0]: f for f in known or () if isinstance(f.source, Column)}
    fields = []
    for field in support.covariates or ():
        mine, wanted = field.source, book.get(field.names[0])
        if not isinstance(mine, Column) or wanted is None:
            fields.append(field)
            continue
        fields.append(wanted)
        name, levels = field.names[0], wanted.levels
        if (mine.levels is None) != (levels is None):
            kinds = ("numbers", "categories") if mine.levels is None else ("categories", "numbers")
            raise ValueError(f"{where}: the column {name!r} has {kinds[0]}, but {kinds[1]} before.")
        if mine.levels is not None and levels is not None and mine.levels != levels:
            column = support.input_names.index(name)
            support = _mapped(support, column, _coder(mine.levels, levels, name, where))
    return dataclasses.replace(support, covariates=tuple(fields) or None)


def with_common_tables(
    supports: Sequence[Support], labels: Sequence[str]
) -> tuple[list[Support], list[str]]:
    """Write the table columns of several sources in one code book; return what was filled in.

    A source without a column that others have reads the field without its effect: no category, or
    the mean of the numbers.

    >>> from mrgp import points
    >>> with_type = points([[0.0]], covariates={"type": ["road"]})
    >>> made, said = with_common_tables([with_type, points([[3.0]])], ["sites", "cells"])
    >>> made[1].x, said
    (array([[ 3., -1.]]), ["cells has no 'type', and reads the field without"])
    """
    found: dict[str, list[tuple[int, Column]]] = {}
    for i, support in enumerate(supports):
        for field in support.covariates or ():
            if isinstance(field.source, Column):
                found.setdefault(field.names[0], []).append((i, field.source))
    if not found:
        return list(supports), []
    fields = tuple(_joined(name, found[name], supports, labels) for name in found)
    made, said = [], []
    for i, (support, label) in enumerate(zip(supports, labels, strict=True)):
        lost = [name for name in found if all(i != j for j, _ in found[name])]
        if lost:
            said.append(f"{label} has no {', '.join(map(repr, lost))}, and reads the field without")
        made.append(_in_order(neutral(recoded(support, fields, label), fields), list(found)))
    return made, said


def _joined(
    name: str, having: list[tuple[int, Column]], supports: Sequence[Support], labels: Sequence[str]
) -> Field:
    """Return a column as all sources have it: every level, and what has no effect."""
    first, one = having[0]
    for i, other in having:
        if (other.levels is None) != (one.levels is None):
            kinds = ["numbers" if c.levels is None else "categories" for c in (other, one)]
            raise ValueError(
                f"{labels[i]}: the column {name!r} has {kinds[0]}, but {kinds[1]} in"
                f" {labels[first]}. Make them alike, as frame[{name!r}].astype(str)."
            )
    if one.levels is not None:
        levels = sorted({level for _, column in having for level in column.levels or ()})
        return Field((name,), (), Column(tuple(levels), NONE))
    known = [column.neutral for _, column in having if column.neutral is not None]
    values = [
        np.ravel(supports[i].sides[supports[i].input_names.index(name)].lower) for i, _ in having
    ]
    return Field(
        (name,), (), Column(None, known[0] if known else float(np.concatenate(values).mean()))
    )


def _columns_of(table: Any, count: int, where: str) -> dict[str, tuple[np.ndarray, Any]]:
    """Return each column of a table as numbers, with the levels of categories."""
    import pandas as pd

    if not isinstance(table, pd.DataFrame | Mapping):
        raise TypeError(
            f"{where}: covariates= takes a data frame, or a mapping of columns; got"
            f" {type(table).__name__}."
        )
    frame = pd.DataFrame(dict(table.items()))
    if len(frame) != count or frame.shape[1] == 0:
        raise ValueError(
            f"{where}: covariates have {len(frame)} rows of {frame.shape[1]} columns; there are"
            f" {count} regions, each of which needs a row."
        )
    return {str(name): _coded(frame[name], where) for name in frame}


def _coded(column: Any, where: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    import pandas as pd

    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    values = column.to_numpy(np.float64, na_value=np.nan) if numeric else None
    gaps = column.isna().to_numpy() if values is None else ~np.isfinite(values)
    if gaps.any():
        raise ValueError(
            f"{where}: the covariate {column.name!r} is missing in {gaps.sum()} of {len(gaps)}"
            f" rows, first in row {np.argmax(gaps)}. Fill it in, or drop those rows."
        )
    if values is not None:
        return values, None
    if column.dtype.kind in "mM":
        raise TypeError(
            f"{where}: the covariate {column.name!r} holds dates. Give them as inputs, or as"
            " numbers."
        )
    levels, codes = np.unique(column.astype(str).to_numpy(dtype=object), return_inverse=True)
    return codes.astype(np.float64).reshape(-1), tuple(map(str, levels))


def _coder(
    mine: tuple[str, ...], levels: tuple[str, ...], name: str, where: str
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the map from codes of one book to those of another, which has all that are used."""

    def coded(codes: np.ndarray) -> np.ndarray:
        used = [mine[int(code)] for code in np.unique(codes) if code != NONE]
        unseen = [level for level in used if level not in levels]
        if unseen:
            small = {level.lower(): level for level in levels}
            near = difflib.get_close_matches(unseen[0].lower(), small, 1)
            meant = f" Did you mean {small[near[0]]!r}?" if near else ""
            raise ValueError(
                f"{where}: the category {unseen[0]!r} of {name!r} was never seen in the fit, which"
                f" has {', '.join(levels)}.{meant} Leave those rows out, or give them one of these."
            )
        book = np.array([levels.index(m) if m in levels else NONE for m in mine] + [NONE])
        return book[codes.astype(int)]

    return coded


def _appended(support: Support, fields: tuple[Field, ...], values: Values, where: str) -> Support:
    """Add columns of one value for each region; other supports than boxes become products."""
    names = tuple(field.names[0] for field in fields)
    taken = [name for name in names if name in support.input_names]
    if taken:
        raise ValueError(f"{where}: there is already an input {taken[0]!r}; rename the column.")
    inputs = check_inputs((*support.input_names, *names), support.dimension + len(names), where)
    axes = (*support.input_axes, *(None for _ in names)) if support.axes else None
    covariates = (*(support.covariates or ()), *fields)
    labels = support.labels | {"inputs": inputs, "axes": axes, "covariates": covariates}
    if isinstance(support, Rectangular):
        lower, upper = (np.concatenate([bound, values], 1) for bound in support.bounds)
        flat = (*support.pointlike, *(True for _ in names))
        return like([support], (lower, upper), support.weights, flat, **labels)
    own = support.dimension
    bare = dataclasses.replace(support, inputs=None, axes=None, covariates=None, space=None)
    rows = Points(values, np.ones(len(support)))
    new = tuple(range(own, own + len(names)))
    return of_parts([(bare, tuple(range(own))), (rows, new)], labels)


def _mapped(support: Support, column: int, change: Callable[[np.ndarray], np.ndarray]) -> Support:
    """Change the numbers along one input."""
    if isinstance(support, Products):
        parts = [
            _mapped(part, columns.index(column), change) if column in columns else part
            for part, columns in support.members
        ]
        return dataclasses.replace(support, parts=tuple(parts))
    changed = {}
    for name in ("x", "lower", "upper"):
        if hasattr(support, name):
            array = np.array(getattr(support, name))
            array[..., column] = change(array[..., column])
            changed[name] = array
    return dataclasses.replace(support, **changed)


def _in_order(support: Support, names: list[str]) -> Support:
    """Put the columns of tables, which come last, into one order."""
    fields = support.covariates or ()
    there = [name for field in fields for name in field.names]
    tables = [field for field in fields if isinstance(field.source, Column)]
    own = support.dimension - len(names)
    if [f.names[0] for f in tables] == names or not isinstance(support, Rectangular):
        return support
    if there[-len(names) :] != [f.names[0] for f in tables]:
        return support
    order = [*range(own), *(support.input_names.index(name) for name in names)]
    lower, upper = (np.asarray(bound)[:, order] for bound in support.bounds)
    flat = tuple(support.pointlike[d] for d in order)
    by_name = {f.names[0]: f for f in tables}
    sorted_fields = (*fields[: len(fields) - len(names)], *(by_name[name] for name in names))
    inputs = tuple(support.input_names[d] for d in order)
    labels = support.labels | {"inputs": inputs, "covariates": sorted_fields}
    return like([support], (lower, upper), support.weights, flat, **labels)
