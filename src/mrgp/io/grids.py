"""Gridded data in and out: xarray."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mrgp.data import Observations, stored
from mrgp.io import geography
from mrgp.io.columns import as_list, order_of
from mrgp.io.quantities import check_time_unit, restore, wall_clock
from mrgp.io.sides import cells_along, cells_at, centres_within, support_of, tensor, within
from mrgp.io.unread import blocks, loaded, stays
from mrgp.prediction import Prediction
from mrgp.supports import Boxes, Kind, Points, Side, Support

WHERE = "from_grid"
GEOGRAPHIC = {
    "longitude": ("degrees_east", "degree_east", "degrees_e", "degree_e"),
    "latitude": ("degrees_north", "degree_north", "degrees_n", "degree_n"),
}


def from_grid(
    array: Any,
    variable: str | None = None,
    *,
    dims: Any = None,
    inputs: Any = None,
    bounds: Mapping[str, Any] | None = None,
    width: Mapping[str, Any] | None = None,
    instant: Any = (),
    crs: Any = None,
    task: str | None = None,
    name: str | None = None,
    noise_variance: Any = None,
    likelihood: Any = "gaussian",
    exposure: Any = None,
    trials: Any = None,
    limit: Any = None,
    upper_limit: Any = None,
    units: str | None = None,
    kind: Kind = "mean",
    time_unit: str = "h",
    space: Any = None,
    lazy: bool | None = None,
) -> Any:
    """Read observations from an xarray DataArray, or a variable of a Dataset; NaN is missing.

    Every dimension becomes an input, in the order of the array or of `dims`; `inputs` names or
    orders them as in `from_frame`. Along a dimension the regions are cells: between the CF bounds
    that a Dataset has or `bounds={"lat": ...}` gives ([n, 2], or n + 1 edges); of the width that
    `width={"lat": 0.1}` gives, about the coordinate; or else half way to the neighbours. They are
    points along dimensions named by `instant`, along a single coordinate without bounds, and along
    dates without bounds: for values that are means over windows, give the windows, for example
    `bounds={"time": numpy.stack([t, t + numpy.timedelta64(1, "h")], 1)}`.

    Dates become numbers as in `from_frame`. Dimensions that CF attributes call longitude and
    latitude (or that are named so and `crs="EPSG:4326"` is given) become local kilometres;
    `crs=False` leaves degrees. Longitudes may run from 0 to 360. Task and units are the array's
    name and its attribute, unless given; `units=""` is none. `noise_variance`, `exposure` and
    `trials` are numbers, arrays of the grid's shape, DataArrays with the same coordinates in any
    order, or names of variables of the Dataset. Scalar coordinates are left out: `expand_dims`
    makes one an input. A Dataset of coordinates alone gives the support, to predict on. `space` is
    as in `from_frame`.

    Of arrays backed by Dask that have more than a million values (or with `lazy=True`), a sample is
    read, and the others stay where they are stored until `MRGP(method="svgp")` asks for them, chunk
    by chunk. `lazy=False` reads everything.

    >>> import numpy as np, xarray as xr
    >>> grid = xr.DataArray(np.ones((2, 3)), {"y": [3.0, 1.0], "x": [0.0, 1.0, 2.0]}, name="no2")
    >>> from_grid(grid)
    Observations(source, no2: 6 of 6 values observed;
        Boxes(6 means: y 0 to 4, width 2; x -0.5 to 2.5, width 1))
    """
    grid = _select(array, variable)
    given = {"bounds": bounds, "width": width, "instant": instant, "crs": crs}
    along, names, dims = cells_of(array, grid, dims, inputs, time_unit=time_unit, **given)
    size = math.prod(len(side.lower) for side in along)
    cellwise = {"noise_variance": noise_variance, "exposure": exposure, "trials": trials}
    beside = {key: _cellwise(key, given, array, grid) for key, given in cellwise.items()}

    def cells(block: Sequence[slice]) -> Support:
        """Return the support of the cells in some stretch along each input."""
        some = [
            side.take(np.arange(len(side.lower))[s]) for side, s in zip(along, block, strict=True)
        ]
        index = np.indices([len(side.lower) for side in some]).reshape(len(some), -1)
        rows = [side.take(which) for side, which in zip(some, index, strict=True)]
        return within(support_of(rows, kind, names), space, WHERE)

    def read(block: Sequence[slice], part_of_more: bool = False) -> Observations | int:
        part = dict(zip(dims, block, strict=True))
        values = _flatten(loaded(grid, part), dims)
        if part_of_more and np.isnan(values).all():
            return len(values)
        return Observations(
            cells(block),
            values,
            task=task or str(grid.name or "value"),
            name=name or "source",
            likelihood=likelihood,
            limit=limit,
            upper_limit=upper_limit,
            **{
                key: _flatten(loaded(given, part), dims) if getattr(given, "dims", ()) else given
                for key, given in beside.items()
            },
            units=grid.attrs.get("units") if units is None else units,
        )

    everything = [slice(None)] * len(dims)
    if hasattr(grid, "data_vars"):
        return cells(everything)
    if not stays(size, grid.chunks is not None, lazy, WHERE):
        return read(everything)
    parts = blocks(grid, dims)
    return stored(lambda chunk: read(parts[chunk], part_of_more=True), len(parts))


def cells_of(
    array: Any,
    grid: Any,
    dims: Any = None,
    inputs: Any = None,
    *,
    bounds: Mapping[str, Any] | None = None,
    width: Mapping[str, Any] | None = None,
    instant: Any = (),
    crs: Any = None,
    time_unit: str = "h",
) -> tuple[list[Side], tuple[str, ...], list[str]]:
    """Return the cells along each input of a grid, the names of the inputs, and the dimensions.

    The arguments are those of `from_grid`; `array` may have bounds beside the `grid`. All are in
    the order of the inputs, and the cells have the names of the dimensions.
    """
    dims = _dims(grid, dims)
    check_time_unit(time_unit, WHERE)
    points, widths, edges = as_list(instant), dict(width or {}), dict(bounds or {})
    for argument, given in {"instant": points, "width": widths, "bounds": edges}.items():
        unknown = [name for name in given if name not in dims]
        if unknown:
            raise ValueError(
                f"{WHERE}: {argument}= names {unknown[0]!r}, but the dimensions are {dims}."
            )
    edges |= _cf_bounds(array, [d for d in dims if d not in {*points, *widths, *edges}])
    pair = _degrees(grid, dims, crs)
    sides = []
    for i, dim in enumerate(dims):
        turning = pair is not None and i == pair[0]
        ends = None if dim in points else (edges.get(dim), widths.get(dim))
        sides.append(cells_along(_index(grid, dim), dim, ends, time_unit, turning))
    if pair is not None:
        lon, lat = pair
        sides[lon], sides[lat] = geography.localise(sides[lon], sides[lat], WHERE)
    order, names = order_of(dims, inputs, WHERE)
    return [sides[i] for i in order], names, [dims[i] for i in order]


def to_grid(item: Observations | Prediction, like: Any = None, local: bool = False) -> Any:
    """Return observations as a DataArray, or a prediction as a Dataset, on the grid they form.

    The regions must be points or boxes, one for each cell of a full grid, in any order. A Dataset
    has `mean`, `std` and the ends of the 95 % interval, `lower` and `upper`, with CF bounds of
    cells and windows. Dates are UTC without a zone, which xarray cannot hold (the attribute
    `time_zone` keeps it), or wall-clock times of that zone with `local=True`. `like`, the array or
    Dataset that the regions came from, lends its coordinates, attributes and order of dimensions.
    """
    import xarray as xr

    support = item.support
    if not isinstance(support, Points | Boxes):
        raise ValueError(
            f"to_grid: regions of type {type(support).__name__} are no cells of a grid. Use"
            " to_frame() instead."
        )
    added = {name for field in support.covariates or () for name in field.names}
    inputs = [side for side in support.sides if side.name not in added]
    along, rows, shape = tensor(inputs, "to_grid")

    def field(values: np.ndarray) -> Any:
        cells = np.empty(len(values))
        cells[rows] = values
        attrs = {} if item.units is None else {"units": item.units}
        return xr.Variable([side.name for side in along], cells.reshape(shape), attrs)

    coordinates: dict[str, Any] = {}
    for side in along:
        coordinates |= coordinate(side, local, isinstance(item, Prediction))
    if isinstance(item, Prediction):
        lower, upper = item.interval(0.95)
        values = {"mean": item.mean, "std": item.std, "lower": lower, "upper": upper}
        attrs = {"task": item.task} | ({"source": item.source} if item.source else {})
        fields = {name: field(of_regions) for name, of_regions in values.items()}
        grid: Any = xr.Dataset(fields, coordinates, attrs)
    else:
        grid = xr.DataArray(field(item.y), coordinates, name=item.task)
    return grid if like is None else _alike(grid, along, like)


def _select(array: Any, variable: str | None) -> Any:
    """Return the array meant, or a Dataset that has coordinates alone."""
    import xarray as xr

    if isinstance(array, xr.DataArray):
        if variable is not None:
            raise ValueError(f"{WHERE}: variable={variable!r} is for a Dataset; got a DataArray.")
        return array
    if not isinstance(array, xr.Dataset):
        raise TypeError(
            f"{WHERE} takes an xarray DataArray or Dataset first; got {type(array).__name__}."
        )
    bounds = {bounds_name(array[name]) for name in array.coords}
    found = [str(name) for name in array.data_vars if name not in bounds]
    if variable is None and len(found) > 1:
        raise ValueError(f"{WHERE}: say which variable= of the Dataset; it has {found}.")
    if variable is not None and variable not in found:
        raise ValueError(f"{WHERE}: the Dataset has no variable {variable!r}; it has {found}.")
    return array[variable or found[0]] if found else array


def _dims(grid: Any, dims: Any) -> list[str]:
    there = [str(d) for d in grid.dims]
    if hasattr(grid, "data_vars"):
        there = [d for d in there if d in grid.coords]
    if not there:
        raise ValueError(f"{WHERE}: the array has no dimensions with coordinates.")
    wanted = there if dims is None else as_list(dims)
    if sorted(wanted) != sorted(there):
        raise ValueError(
            f"{WHERE}: dims= orders the dimensions {there}; got {wanted}. Take a part of the array"
            " with isel or squeeze first."
        )
    return wanted


def _index(grid: Any, dim: str) -> Any:
    """Return the coordinate of a dimension, or say why the grid is not rectilinear."""
    import pandas as pd

    if dim not in grid.coords:
        bent = [str(n) for n, c in grid.coords.items() if dim in c.dims and c.ndim > 1]
        if bent:
            raise ValueError(
                f"{WHERE}: the coordinates {bent} are curvilinear, of several dimensions. Read the"
                " cells one by one, as from_frame(array.to_dataframe().reset_index(), ...), or"
                " regrid the array."
            )
        raise ValueError(
            f"{WHERE}: the dimension {dim!r} has no coordinate. Give it one with assign_coords, or"
            " take a part with isel."
        )
    index = grid.get_index(dim)
    if isinstance(index, pd.MultiIndex):
        raise ValueError(f"{WHERE}: the dimension {dim!r} is stacked. Call unstack({dim!r}) first.")
    return index


def bounds_name(coordinate: Any) -> str | None:
    """Return the name of the bounds that CF attributes give a coordinate."""
    return coordinate.attrs.get("bounds", coordinate.encoding.get("bounds"))


def _cf_bounds(array: Any, dims: list[str]) -> dict[str, Any]:
    """Return the bounds that CF attributes name, where the array brings them along."""
    known = {*array.coords, *getattr(array, "data_vars", ())}
    found = {}
    for dim in dims:
        name = bounds_name(array[dim]) if dim in array.coords else None
        if name in known:
            found[dim] = array[name].to_numpy()
        elif name is not None:
            warnings.warn(
                f"{WHERE}: {dim!r} has CF bounds {name!r}, which this array does not bring along."
                " Pass the Dataset and the variable's name, or give bounds=.",
                stacklevel=4,
            )
    return found


def _degrees(grid: Any, dims: list[str], crs: Any) -> tuple[int, int] | None:
    """Return which dimensions are longitude and latitude, if they are known to be."""
    if crs is False:
        return None
    if crs is not None:
        if not geography.is_degrees(crs):
            raise ValueError(
                f"{WHERE}: cells of the CRS {crs!r} are not boxes in degrees. Leave crs= out for"
                " all sources, or make the cells polygons and use from_frame(geometry=...)."
            )
        return geography.find_pair(dims, crs, WHERE)
    marks = [grid[dim].attrs if dim in grid.coords else {} for dim in dims]
    names = [mark.get("standard_name") for mark in marks]
    units = [str(mark.get("units")).lower() for mark in marks]
    lon, lat = (
        [i for i in range(len(dims)) if names[i] == quantity or units[i] in spellings]
        for quantity, spellings in GEOGRAPHIC.items()
    )
    return (lon[0], lat[0]) if len(lon) == len(lat) == 1 else None


def _flatten(values: Any, dims: list[str]) -> np.ndarray:
    return values.transpose(*dims).to_numpy().ravel()


def _cellwise(what: str, given: Any, array: Any, grid: Any) -> Any:
    """Return noise variances, say, as an array like the grid, or one number for all."""
    import xarray as xr

    if isinstance(given, str):
        known = [str(variable) for variable in getattr(array, "data_vars", ())]
        if given not in known:
            raise ValueError(
                f"{WHERE}: {what}={given!r} must name a variable of the Dataset; there are"
                f" {known}. Or give the values, as a DataArray."
            )
        given = array[given]
    if isinstance(given, xr.DataArray) and given.ndim:
        return _aligned(what, given, grid)
    if given is None or np.ndim(given) < 2:
        return given
    if np.shape(given) != grid.shape:
        raise ValueError(
            f"{WHERE}: {what}= needs the shape of the grid, {grid.shape} along"
            f" {[str(d) for d in grid.dims]}; got {np.shape(given)}."
        )
    return xr.DataArray(given, dims=grid.dims)


def _aligned(what: str, noise: Any, grid: Any) -> Any:
    """Put what each cell has in the order of the grid, coordinate by coordinate."""
    wanted = [str(d) for d in grid.dims]
    if sorted(map(str, noise.dims)) != sorted(wanted):
        raise ValueError(
            f"{WHERE}: {what}= needs the dimensions {wanted} of the grid; got"
            f" {[str(d) for d in noise.dims]}. Call broadcast_like, or isel, first."
        )
    for dim in wanted:
        here, there = _index(grid, dim), _index(noise, dim)
        if here.equals(there):
            continue
        if not here.is_unique or not here.sort_values().equals(there.sort_values()):
            raise ValueError(
                f"{WHERE}: {what}= has other coordinates along {dim!r} than the grid, which"
                f" has {len(here)} from {here.min()} to {here.max()}; got {len(there)} from"
                f" {there.min()} to {there.max()}. Bring them together with reindex_like, or give a"
                " NumPy array of the grid's shape."
            )
        noise = noise.sel({dim: here})
    return noise


def coordinate(side: Side, local: bool, bounded: bool) -> dict[str, Any]:
    """Return a dimension's coordinate and, for cells, its bounds."""
    attrs: dict[str, str] = {}
    if side.quantity in GEOGRAPHIC:
        attrs = {"standard_name": side.quantity, "units": GEOGRAPHIC[side.quantity][0]}
    elif side.axis is not None and side.axis.zone is not None:
        attrs = {"time_zone": side.axis.zone}

    def shown(numbers: np.ndarray) -> Any:
        values = restore(numbers, side.axis)
        return wall_clock(values, local) if side.quantity == "time" else values

    found: dict[str, Any] = {}
    if bounded and not side.flat:
        attrs["bounds"] = f"{side.name}_bounds"
        ends = np.stack([shown(side.lower), shown(side.upper)], 1)
        found[attrs["bounds"]] = ((side.name, "bounds"), ends)
    return {side.name: (side.name, shown(centres_within(side.lower, side.upper)), attrs)} | found


def _alike(grid: Any, along: list[Side], like: Any) -> Any:
    """Lend a grid the coordinates, attributes and order of the one that it came from."""
    for side in along:
        lent = like.coords.get(side.name)
        cells = None if lent is None else cells_at(side, lent.to_numpy())
        if lent is None or cells is None:
            raise ValueError(
                f"to_grid: the coordinates of like= along {side.name!r} are not one in each cell."
            )
        bounds = {k: v for k, v in grid[side.name].attrs.items() if k == "bounds"}
        grid = grid.isel({side.name: cells})
        grid[side.name] = (side.name, lent.to_numpy(), lent.attrs | bounds)
    return grid.transpose(*(d for d in like.dims if d in grid.dims), ...)
