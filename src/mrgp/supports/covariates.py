"""Known fields sampled at the nodes of supports: covariates as further inputs, and weights."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np
from jaxtyping import Float
from scipy.interpolate import RegularGridInterpolator

from mrgp.supports.axes import same_turn
from mrgp.supports.places import in_words
from mrgp.supports.product import of_parts
from mrgp.supports.quadrature import Midpoint
from mrgp.supports.regions import check_inputs
from mrgp.supports.support import Columns, Interpolation, Nodes, Origin, Rectangular, Support, like

FIELD_RULE = Midpoint(5)
"""Fields such as land use are rough: evenly spread nodes see them best."""

_EPOCH = np.datetime64("1970-01-01T00:00:00", "ns")
_SECOND = np.timedelta64(1, "s")
_NO_WEIGHT = 1e-9


@dataclasses.dataclass(frozen=True)
class Column:
    """Values that came with the rows of a table: numbers, or codes of the categories `levels`.

    `neutral` is the value without effect, where it is known: the mean of numbers, or no category.

    >>> Column(("park", "road")).neutral is None
    True
    """

    levels: tuple[str, ...] | None = None
    neutral: float | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Grid:
    """Values on a rectilinear grid: `values[c]` has one axis for each of `coordinates`.

    Coordinates ascend; dates are seconds since 1970. Cells reach half a step beyond the outermost
    centres, where the value is that at the centre. Values of categories are codes of `levels`.

    >>> grid = Grid((np.array([0.0, 1.0]),), (False,), np.array([[10.0, 20.0]]), "linear")
    >>> grid(np.array([[0.25]]))
    array([[12.5]])
    """

    coordinates: tuple[Float[np.ndarray, " _"], ...]
    dated: tuple[bool, ...]
    values: Float[np.ndarray, "c *g"]
    method: str
    levels: tuple[str, ...] | None = None

    def __call__(self, x: Float[np.ndarray, "k d"]) -> Float[np.ndarray, "k c"]:
        """Interpolate at the rows of x; NaN outside the grid and beside missing values."""
        inside = [_into_range(column, c) for column, c in zip(x.T, self.coordinates, strict=True)]
        missing = np.isnan(self.values)
        found = self._look_up(np.where(missing, 0.0, self.values), inside)
        if missing.any():
            # A missing neighbour of no weight does not spoil the value at a centre.
            found[self._look_up(missing.astype(np.float64), inside) > _NO_WEIGHT] = np.nan
        return found

    def _look_up(self, values: np.ndarray, x: list[np.ndarray]) -> Float[np.ndarray, "k c"]:
        last = np.moveaxis(values, 0, -1)
        found = RegularGridInterpolator(self.coordinates, last, self.method, bounds_error=False)
        return found(np.stack(x, -1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return False
        if any(getattr(self, n) != getattr(other, n) for n in ("dated", "method", "levels")):
            return False
        mine, others = ((*g.coordinates, g.values) for g in (self, other))
        pairs = zip(mine, others, strict=True)
        return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


@dataclasses.dataclass(frozen=True, eq=False)
class Field:
    """One or several known functions of some inputs: a grid, or a Python function of [k, d].

    `inputs` names the columns it is given, in this order; None stands for all. A `Column` is known
    only where a table has it.

    >>> from mrgp import points
    >>> Field(("height",), None, lambda x: 2 * x).extend(points([[3.0]]))
    Points(1 mean: x1 3 to 3; height 6 to 6)
    """

    names: tuple[str, ...]
    inputs: tuple[str, ...] | None
    source: Grid | Column | Callable[[Any], Any]

    @classmethod
    def of(cls, source: Any, names: Any, inputs: Any, method: str) -> "Field":
        """Accept an xarray DataArray or Dataset, or a function."""
        if method not in get_args(Interpolation):
            raise ValueError(f"method= is one of {get_args(Interpolation)}; got {method!r}.")
        if hasattr(source, "dims") and hasattr(source, "coords"):
            return _from_xarray(source, names, inputs, method)
        if not callable(source):
            raise TypeError(
                "Give an xarray grid, or a function of the node coordinates [k, d]; got"
                f" {type(source).__name__}."
            )
        if method != "linear":
            raise ValueError("method= belongs to grids; a function is called at the nodes.")
        if names is None:
            raise ValueError('Name what the function returns, as with_covariates(f, "elevation").')
        names = (names,) if isinstance(names, str) else tuple(names)
        inputs = (inputs,) if isinstance(inputs, str) else inputs
        return cls(names, None if inputs is None else tuple(inputs), source)

    def columns(self, support: Support) -> tuple[int, ...]:
        """Return the columns of a support that the field is given, in its order."""
        if self.inputs is None:
            return tuple(range(support.dimension))
        missing = [name for name in self.inputs if name not in support.input_names]
        if missing:
            raise ValueError(
                f"{self.label} depends on {', '.join(missing)}, but the inputs are"
                f" {support.input_names}. Rename the grid's dimensions, or name the inputs."
            )
        return tuple(support.input_names.index(name) for name in self.inputs)

    @property
    def on_grid(self) -> bool:
        """Whether the field is a grid, which is looked up in dates and degrees."""
        return isinstance(self.source, Grid)

    @property
    def in_rows(self) -> bool:
        """Whether the field is a column of a table, which has it row by row."""
        return isinstance(self.source, Column)

    @property
    def neutral(self) -> float | None:
        """The value of a table's column that has no effect, where it is known."""
        return getattr(self.source, "neutral", None)

    @property
    def levels(self) -> tuple[str, ...] | None:
        """The categories, where it has such."""
        return getattr(self.source, "levels", None)

    @property
    def label(self) -> str:
        """The field in words, for messages."""
        return f"The field {', '.join(map(repr, self.names))}"

    def same(self, other: "Field") -> bool:
        """Tell whether another field is the same function of the same inputs."""
        mine, others = ((f.names, f.inputs, f.source) for f in (self, other))
        return mine == others

    def extend(self, support: Support) -> Support:
        """Add the field's values as further inputs of a support."""
        if self.in_rows:
            raise ValueError(
                f"The covariate {self.names[0]!r} is missing. It came with the rows of a table:"
                " give it for every region, as points(x, covariates=frame) or from_frame(...,"
                f" covariates=[{self.names[0]!r}])."
            )
        labels = self._extended_labels(support)
        apart = self._apart(support)
        x = np.concatenate([apart.nodes.x, self._at(support, apart)], -1)
        return apart.together(support, labels, x=x)

    def weight(self, support: Support) -> Support:
        """Multiply the weights of a support by the field, as at its nodes."""
        apart = self._apart(support)
        given = apart.nodes.weights
        density = np.where(given != 0, self._at(support, apart)[..., 0], 0.0)
        self._require_density(density)
        weights = given * density
        if apart.nodes.kind == "mean":
            weights = weights / weights.sum(1, keepdims=True)
        return apart.together(support, support.labels, weights=weights)

    def _require_density(self, density: Float[np.ndarray, "n s"]) -> None:
        """Refuse weights that are negative, or zero all over a region."""
        if np.any(density < 0):
            row = int(np.argmax((density < 0).any(1)))
            raise ValueError(
                f"{self.label} is negative in region {row}; weights must not be. Look for codes of"
                " missing values, such as -9999, and make them NaN or zero."
            )
        empty = ~(density > 0).any(1)
        if np.any(empty):
            raise ValueError(
                f"{self.label} is zero all over region {np.argmax(empty)}, which then has no"
                " weighted mean or total. Drop the region."
            )

    def _extended_labels(self, support: Support) -> dict[str, Any]:
        """Return the labels of a support with the field's columns."""
        taken = [name for name in self.names if name in support.input_names]
        if taken:
            raise ValueError(
                f"with_covariates: there is already an input {taken[0]!r}. Give the covariate"
                " another name, as with_covariates(source, name)."
            )
        names = (*support.input_names, *self.names)
        check_inputs(names, len(names), "with_covariates")
        axes = (*support.input_axes, *(None for _ in self.names)) if support.axes else None
        covariates = (*(support.covariates or ()), self)
        return support.labels | {"inputs": names, "axes": axes, "covariates": covariates}

    def _apart(self, support: Support) -> "_Apart":
        """Write what the field depends on as nodes, which keep the regions they are laid out in."""
        wanted = set(self.columns(support))
        used = tuple(sorted(d for block in support.blocks if wanted & set(block) for d in block))
        if isinstance(support, Rectangular) and all(support.pointlike[d] for d in used):
            x = np.asarray(support.bounds[0])[:, None, list(used)]
            nodes = Nodes(x, np.asarray(support.weights)[:, None], kind=support.kind)
            return _Apart(used, nodes, None)
        rest = tuple(d for d in range(support.dimension) if d not in used)
        whole, *others = support.factors((used, rest)) if rest else (support,)
        nodes = whole.quadrature(FIELD_RULE)
        origin = getattr(whole, "origin", None) or (Origin(whole) if nodes.solid else None)
        x, weights = np.asarray(nodes.x), np.asarray(nodes.weights)
        made = Nodes(x, weights, wide=nodes.solid, origin=origin, kind=whole.kind)
        return _Apart(used, made, tuple(others))

    def _at(self, support: Support, apart: "_Apart") -> Float[np.ndarray, "n s f"]:
        """Sample the field at nodes; padding takes the value of a used node."""
        columns = self.columns(support)
        x = np.asarray(apart.nodes.x)[..., [apart.used.index(d) for d in columns]]
        flat = x.reshape(-1, x.shape[-1])
        if isinstance(self.source, Grid):
            values = self.source(self._physical(flat, self.source, support, columns))
        else:
            values = self._call(flat)
        values = values.reshape(*x.shape[:-1], len(self.names))
        counts = np.asarray(apart.nodes.weights) != 0
        counts |= ~counts.any(1, keepdims=True)
        self._require_finite(values, x, counts, support, columns)
        first = np.take_along_axis(values, np.argmax(counts, 1)[:, None, None], 1)
        return np.where(counts[..., None], values, first)

    def _physical(
        self, x: Float[np.ndarray, "k c"], grid: Grid, support: Support, columns: Columns
    ) -> Float[np.ndarray, "k c"]:
        """Return the dates and degrees that numbers of some columns of a support stand for."""
        found = []
        for i, d in enumerate(columns):
            axis, where = support.input_axes[d], f"{self.label}, input {support.input_names[d]!r}"
            timed = axis is not None and axis.quantity == "time"
            if grid.dated[i] and not timed:
                raise ValueError(
                    f"{where}: the grid has dates, but the support's numbers have no time axis."
                    " Make the support with mrgp.from_frame, or turn the grid's dates into the same"
                    " numbers."
                )
            if timed and not grid.dated[i]:
                raise ValueError(
                    f"{where}: the support has dates, but the grid has plain numbers. Give the grid"
                    " dates, as grid.assign_coords({...: pandas.to_datetime(...)})."
                )
            values = x[:, i] if axis is None else axis.physical(x[:, i])
            if axis is not None and axis.quantity == "longitude":
                # Grids count degrees from -180 or from 0: the same place is a turn away.
                centres = grid.coordinates[i]
                values = same_turn(values, 0.5 * (centres[0] + centres[-1]))
            found.append(values)
        return np.stack(found, -1)

    def _call(self, x: Float[np.ndarray, "k c"]) -> Float[np.ndarray, "k f"]:
        source: Any = self.source
        values = np.asarray(source(x), dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        if values.shape != (len(x), len(self.names)):
            raise ValueError(
                f"{self.label}: the function must return shape ({len(x)}, {len(self.names)}) for"
                f" {len(x)} nodes; got {values.shape}."
            )
        return values

    def _require_finite(
        self,
        values: np.ndarray,
        x: np.ndarray,
        used: np.ndarray,
        support: Support,
        columns: Columns,
    ) -> None:
        """Refuse missing values at nodes that count, naming the field and the place."""
        for i, name in enumerate(self.names):
            bad = ~np.isfinite(values[..., i]) & used
            if bad.any():
                row, node = np.argwhere(bad)[0]
                place = in_words(support, x[row, node], columns)
                raise ValueError(
                    f"The field {name!r} is missing (NaN, or outside its grid) at {bad.sum()} of"
                    f" {used.sum()} nodes, in {bad.any(1).sum()} of {len(bad)} regions, first in"
                    f" region {row} at {place}. Fill it in there, or drop those regions."
                )


class _Apart(NamedTuple):
    """Nodes over the columns `used` of a support, and what stays as it is over the others.

    That is None where regions are points along these columns, and have one node each.
    """

    used: Columns
    nodes: Nodes
    others: tuple[Support, ...] | None

    def together(self, support: Support, labels: dict[str, Any], **changes: Any) -> Support:
        """Put nodes of other weights, or with further columns, back into the support."""
        nodes, own = dataclasses.replace(self.nodes, **changes), support.dimension
        new = nodes.dimension - len(self.used)
        if self.others is None:
            extra = nodes.x[:, 0, len(self.used) :]
            lower, upper = (np.concatenate([bound, extra], 1) for bound in support.bounds)
            flat = (*support.pointlike, *(True,) * new)
            weights = nodes.weights[:, 0]
            return like([support], (lower, upper), weights, flat, **labels)
        if not self.others:
            return dataclasses.replace(nodes, **labels)
        columns = (*self.used, *range(own, own + new))
        rest = tuple(d for d in range(own) if d not in self.used)
        return of_parts([(nodes, columns), *((part, rest) for part in self.others)], labels)


def extend_all(
    support: Support, fields: tuple[Field, ...] | None, inputs: tuple[str, ...]
) -> Support:
    """Give a support the covariates it lacks among `inputs`, in order; names where it has none.

    >>> from mrgp import points
    >>> extend_all(points([[3.0]]), (Field(("z",), ("x",), lambda x: 2 * x),), ("x", "z"))
    Points(1 mean: x 3 to 3; z 6 to 6)
    """
    if not fields:
        return support
    if support.inputs is None:
        support = dataclasses.replace(support, inputs=inputs[: support.dimension])
    for field in fields:
        if not set(field.names) <= set(support.input_names):
            support = field.extend(support)
    return support


def same_fields(first: tuple[Field, ...] | None, second: tuple[Field, ...] | None) -> bool:
    """Tell whether two supports have their covariates from the same fields.

    >>> [same_fields((Field(("z",), None, abs),), (Field(("z",), None, f),)) for f in (abs, max)]
    [True, False]
    """
    mine, others = first or (), second or ()
    pairs = zip(mine, others, strict=False)
    return len(mine) == len(others) and all(a is b or a.same(b) for a, b in pairs)


def _from_xarray(source: Any, names: Any, inputs: Any, method: str) -> Field:
    if inputs is not None:
        raise ValueError("inputs= belongs to functions; a grid's dimensions name its inputs.")
    arrays = list(source.data_vars.values()) if hasattr(source, "data_vars") else [source]
    names = _field_names(arrays, names)
    arrays = [a.squeeze() for a in arrays]
    dims = tuple(map(str, arrays[0].dims))
    if any(set(a.dims) != set(arrays[0].dims) for a in arrays):
        raise ValueError("The fields of the grid must share their dimensions; add them one by one.")
    if not dims:
        raise ValueError(
            "The grid has one cell alone, so that the field would be a constant. Give a grid of at"
            " least two cells along one of the inputs."
        )
    levels = None
    if arrays[0].dtype.kind in "OUS":
        arrays, levels = _coded_grid(arrays)
        method = "nearest"
    stack = np.stack([a.transpose(*dims).values.astype(np.float64) for a in arrays])
    coordinates, dated = zip(*(_coordinate(arrays[0], dim) for dim in dims), strict=True)
    order = [np.argsort(c) for c in coordinates]
    stack = stack[np.ix_(np.arange(len(stack)), *order)]
    ascending = tuple(c[o] for c, o in zip(coordinates, order, strict=True))
    return Field(names, dims, Grid(ascending, dated, stack, method, levels))


def _coded_grid(arrays: list[Any]) -> tuple[list[Any], tuple[str, ...]]:
    """Return a grid of text as codes of its sorted categories; what is missing stays so."""
    if len(arrays) > 1:
        raise ValueError("A grid of categories is one field; add several one by one.")
    (array,) = arrays
    text = array.values.astype(object)
    gaps = np.vectorize(lambda v: v is None or v != v, otypes=[bool])(text)
    levels, codes = np.unique(text[~gaps].astype(str), return_inverse=True)
    values = np.full(text.shape, np.nan)
    values[~gaps] = codes.reshape(-1)
    return [array.copy(data=values)], tuple(map(str, levels))


def _field_names(arrays: list[Any], names: Any) -> tuple[str, ...]:
    if not arrays:
        raise ValueError("The grid has no fields: the xarray Dataset has no variables.")
    if names is None:
        names = tuple(a.name for a in arrays)
        if None in names:
            raise ValueError(
                'The grid has no name; give one, as with_covariates(grid, "elevation").'
            )
    names = (names,) if isinstance(names, str) else tuple(map(str, names))
    if len(names) != len(arrays):
        raise ValueError(
            f"The grid has {len(arrays)} fields, but {len(names)} names came: {names}."
        )
    return names


def _coordinate(array: Any, dim: str) -> tuple[Float[np.ndarray, " g"], bool]:
    """Return the coordinates along a dimension as numbers, and whether they are dates."""
    if dim not in array.coords:
        raise ValueError(
            f"The grid has no coordinates along {dim!r}; give it some, as"
            f" grid.assign_coords({dim}=...)."
        )
    values = np.asarray(array[dim].values)
    dated = values.dtype.kind == "M"
    if not dated and values.dtype.kind not in "fiu":
        raise TypeError(
            f"The grid's coordinates along {dim!r} must be numbers or dates; got {values.dtype}."
        )
    coordinate = (values - _EPOCH) / _SECOND if dated else values.astype(np.float64)
    if not np.isfinite(coordinate).all() or len(np.unique(coordinate)) < len(coordinate):
        raise ValueError(
            f"The grid's coordinates along {dim!r} are not all different and finite. Drop the cells"
            " that are there twice or have none."
        )
    return coordinate, dated


def _into_range(column: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Move coordinates within half a cell beyond the outermost centres onto them."""
    low, high = centres[0], centres[-1]
    first, last = 0.5 * (centres[1] - centres[0]), 0.5 * (centres[-1] - centres[-2])
    slack = 1e-9 * (high - low)
    near = (column >= low - first - slack) & (column <= high + last + slack)
    return np.where(near, np.clip(column, low, high), column)
