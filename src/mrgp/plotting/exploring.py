"""Predictions to point at and to move through in a notebook, by plotly, without a network."""

from typing import Any

import numpy as np

from mrgp._extras import needed
from mrgp.data import Dataset, Observations
from mrgp.plotting.coordinates import Coordinate, Vector, across_of, coordinates, with_units
from mrgp.plotting.functions import of_task
from mrgp.plotting.shapes import Regions, regions_of, regions_on
from mrgp.plotting.sheets import limits_of
from mrgp.plotting.slices import Slice, slices_of
from mrgp.prediction import Prediction

MOST_STEPS = 72
MARKERS = ("circle", "diamond", "triangle-up", "square")
COLOURS = {"mean": "Viridis", "sd": "Cividis"}
MOST_FILLED = 600
"""Areas of all slices that are filled one by one; of more the edges are drawn."""
CORNERS = 5
"""Of a cell, the first one twice."""
EDGE = "rgba(255,255,255,0.8)"


def explore_prediction(prediction: Prediction, data: Dataset | None = None) -> Any:
    """Return a plotly figure: a curve with its interval, or maps of mean and sd with a slider.

    Pointing tells the place, the time, the value and its units. `data` are laid on top; polygons
    and cells that are no full grid have their outlines. The figure holds all that it shows, and a
    notebook draws it without a network.

    >>> import mrgp
    >>> x, one = mrgp.points([[0.0], [1.0]], inputs="day"), np.ones((1, 2))
    >>> found = explore_prediction(Prediction(x, "no2", None, "ppb", one, one, one))
    >>> [trace.name for trace in found.data], found.layout.yaxis.title.text
    (['95 % interval', 'mean'], 'no2 (ppb)')
    """
    otherwise = "explore needs plotly, which is not installed: pip install 'mrgp[report]'."
    graphs = needed("plotly.graph_objects", otherwise)
    if len(prediction) == 0:
        raise ValueError("explore: the prediction has no regions; predict on some first.")
    seen = None if data is None else of_task(data, prediction.task)
    found = coordinates(prediction.support)
    varying = [name for name, c in found.items() if c.distinct > 1]
    if len(varying) < 2:
        along = found[varying[0] if varying else next(iter(found))]
        return _curve(graphs, prediction, along, seen)
    return _maps(graphs, prediction, across_of(found), seen)


def _offline(graphs: Any) -> Any:
    """Return a figure that a notebook draws with the library in it, not one from a network."""

    def bundle(figure: Any, **_: Any) -> dict[str, str]:
        return {"text/html": figure.to_html(full_html=False, include_plotlyjs=True)}

    # Notebooks ask for `_ipython_display_` first, which would choose a renderer of its own.
    told = {"_repr_mimebundle_": bundle, "_ipython_display_": None}
    return type("Figure", (graphs.Figure,), told)


def _shown(c: Coordinate, numbers: Vector) -> list[Any]:
    """Return numbers of an input as plotly reads them: dates as text."""
    if not c.dated:
        return [float(v) for v in numbers]
    return [c.words(float(v), float(v)) for v in numbers]


def _curve(graphs: Any, prediction: Prediction, along: Coordinate, data: Dataset | None) -> Any:
    """Draw the mean over one input with its interval, and values on top."""
    order = np.argsort(along.middle, kind="stable")
    x = _shown(along, along.middle[order])
    low, high = (end[order] for end in prediction.interval(0.95))
    unit = prediction.units or ""
    band = {"x": x + x[::-1], "y": np.r_[high, low[::-1]], "fill": "toself", "hoverinfo": "skip"}
    figure = _offline(graphs)(
        [
            graphs.Scatter(**band, line={"width": 0}, name="95 % interval"),
            graphs.Scatter(
                x=x,
                y=prediction.mean[order],
                name="mean",
                hovertemplate=f"%{{x}}<br>%{{y:.4g}} {unit}<extra>mean</extra>",
            ),
        ]
    )
    for o, symbol in zip(data or (), MARKERS * len(data or ()), strict=False):
        side = coordinates(o.support)[along.name]
        style = {"mode": "markers", "marker": {"symbol": symbol, "color": "black"}, "name": o.name}
        told = f"%{{x}}<br>%{{y:.4g}} {o.units or ''}<extra>{o.name}</extra>"
        values = o.y / np.asarray(o.support.total)
        figure.add_scatter(x=_shown(side, side.middle), y=values, hovertemplate=told, **style)
    figure.update_xaxes(title=along.label)
    figure.update_yaxes(title=with_units(prediction.task, prediction.units))
    return figure


def _maps(
    graphs: Any, prediction: Prediction, across: tuple[str, str], data: Dataset | None
) -> Any:
    """Draw mean and sd side by side, slice by slice."""
    subplots = needed("plotly.subplots", "")
    values = {"mean": prediction.mean, "sd": prediction.std}
    places = slices_of(prediction.support, across, MOST_STEPS)
    titles = [with_units(f"{name} of {prediction.task}", prediction.units) for name in values]
    style = {"subplot_titles": titles, "horizontal_spacing": 0.16}
    figure = subplots.make_subplots(1, 2, figure=_offline(graphs)(), **style)
    filled = len(prediction) <= MOST_FILLED
    steps = [_step(graphs, prediction, values, across, place, data, filled) for place in places]
    for i, step in enumerate(steps):
        for trace, column in step:
            figure.add_trace(trace.update(visible=i == 0), 1, column)
    if len(places) > 1:
        figure.update_layout(sliders=[_slider(places, list(map(len, steps)))])
    x, y = (coordinates(prediction.support)[name] for name in across)
    ratio = x.aspect(y)
    scale = {} if ratio == "auto" else {"scaleratio": ratio}
    for column, anchor in ((1, "x"), (2, "x2")):
        figure.update_xaxes(title=x.label, constrain="domain", col=column)
        square = scale and {**scale, "scaleanchor": anchor, "constrain": "domain"}
        figure.update_yaxes(title=y.label if column == 1 else None, **square, col=column)
    figure.update_layout(height=520, showlegend=False, hovermode="closest")
    return figure


def _slider(places: list[Slice], sizes: list[int]) -> dict[str, Any]:
    """Return a slider over slices, each of which is named in words and has some traces."""
    owner = np.repeat(np.arange(len(places)), sizes)
    steps = [
        {"label": place.words, "method": "update", "args": [{"visible": (owner == i).tolist()}]}
        for i, place in enumerate(places)
    ]
    return {"steps": steps, "currentvalue": {"prefix": ""}, "pad": {"t": 50}}


def _step(
    graphs: Any,
    prediction: Prediction,
    values: dict[str, Vector],
    across: tuple[str, str],
    place: Slice,
    data: Dataset | None,
    filled: bool,
) -> list[tuple[Any, int]]:
    """Return the traces of one slice, with the panel of each."""
    found = []
    words = place.words
    for column, (name, numbers) in enumerate(values.items(), 1):
        regions = regions_on(prediction.support, numbers, across, place.exactly)
        limits = limits_of(numbers)
        look = {
            "colorscale": COLOURS[name],
            "bar": {"x": 0.43 if column == 1 else 1.01, "len": 0.9, "thickness": 12},
            "told": f"{words}<br>%{{VALUE:.4g}} {prediction.units or ''}<extra>{name}</extra>",
        }
        drawn = [] if regions is None else _field(graphs, regions, limits, look, filled)
        for o, symbol in zip(data or (), MARKERS * len(data or ()), strict=False):
            colour = COLOURS[name] if name == "mean" else None
            drawn += _marks(graphs, o, symbol, across, place, colour, limits)
        found += [(trace, column) for trace in drawn]
    return found


def _field(
    graphs: Any, regions: Regions, limits: tuple[float, float], look: Any, filled: bool
) -> list[Any]:
    """Return a full grid as cells of colour, other areas filled, and points as squares."""
    x, y = regions.x.middle, regions.y.middle
    told = "%{x}, %{y}<br>" + look["told"]
    columns, i = np.unique(x.round(9), return_inverse=True)
    rows, j = np.unique(y.round(9), return_inverse=True)
    # Polygons whose middles are a full grid are still no cells.
    cells = all(len(shape.vertices) <= CORNERS for shape in regions.shapes or ())
    if cells and len(columns) * len(rows) == len(x):
        z = np.full((len(rows), len(columns)), np.nan)
        z[j.ravel(), i.ravel()] = regions.values
        ends = {"zmin": limits[0], "zmax": limits[1], "colorbar": look["bar"]}
        sides = {"x": _shown(regions.x, columns), "y": _shown(regions.y, rows)}
        field = graphs.Heatmap(
            **sides,
            z=z.tolist(),
            **ends,
            colorscale=look["colorscale"],
            hovertemplate=told.replace("VALUE", "z"),
        )
        return [field]
    areas = _areas(graphs, regions, (limits, look["colorscale"]) if filled else None)
    marker = {"color": regions.values, "cmin": limits[0], "cmax": limits[1], "showscale": True}
    marker |= {"symbol": "square", "size": 5 if areas else 11, "colorbar": look["bar"]}
    middles = graphs.Scatter(
        x=_shown(regions.x, x),
        y=_shown(regions.y, y),
        mode="markers",
        marker=marker | {"colorscale": look["colorscale"]},
        customdata=regions.values,
        hovertemplate=told.replace("VALUE", "customdata"),
    )
    return [*areas, middles]


def _areas(
    graphs: Any, regions: Regions, colours: tuple[tuple[float, float], str] | None
) -> list[Any]:
    """Return the outlines of areas: each filled, by limits and a scale of colours, or edges alone.

    Regions that are points have none, and neither have those over dates.
    """
    if regions.shapes is None or regions.x.dated or regions.y.dated:
        return []
    rings = [shape.to_polygons() for shape in regions.shapes]
    style = {"mode": "lines", "hoverinfo": "skip", "line": {"width": 1, "color": EDGE}}
    if colours is None:
        x, y = _corners([ring for several in rings for ring in several])
        return [graphs.Scatter(x=x, y=y, name="outlines", **style)]
    (low, high), scale = colours
    shares = np.clip((regions.values - low) / ((high - low) or 1.0), 0.0, 1.0)
    found = needed("plotly.colors", "").sample_colorscale(scale, shares.tolist())
    drawn = []
    for several, colour in zip(rings, found, strict=True):
        x, y = _corners(several)
        about = {"fill": "toself", "fillcolor": colour, "name": "area"}
        drawn.append(graphs.Scatter(x=x, y=y, **about, **style))
    return drawn


def _corners(rings: list[np.ndarray]) -> tuple[list[float | None], list[float | None]]:
    """Return the corners of rings one after another, with gaps between."""
    x: list[float | None] = []
    y: list[float | None] = []
    for ring in rings:
        gap: list[float | None] = [None] if x else []
        x += [*gap, *map(float, ring[:, 0])]
        y += [*gap, *map(float, ring[:, 1])]
    return x, y


def _marks(
    graphs: Any,
    observed: Observations,
    symbol: str,
    across: tuple[str, str],
    place: Slice,
    colours: str | None,
    limits: tuple[float, float],
) -> list[Any]:
    """Return the values of a source in a slice, in the colours of the map, and its outlines."""
    regions = regions_of(observed, across, place)
    line = {"color": "white", "width": 1}
    marker: dict[str, Any] = {"symbol": symbol, "size": 9, "line": line}
    if regions is None:
        return [graphs.Scatter(x=[], y=[], mode="markers", marker=marker, name=observed.name)]
    if colours is None:
        marker["color"] = "rgba(0,0,0,0.35)"
    else:
        marker |= {"color": regions.values, "colorscale": colours}
        marker |= {"cmin": limits[0], "cmax": limits[1]}
    told = f"%{{x}}, %{{y}}<br>%{{customdata:.4g}} {observed.units or ''}"
    values = graphs.Scatter(
        x=_shown(regions.x, regions.x.middle),
        y=_shown(regions.y, regions.y.middle),
        mode="markers",
        marker=marker,
        customdata=regions.values,
        name=observed.name,
        hovertemplate=f"{told}<extra>{observed.name}</extra>",
    )
    return [*_areas(graphs, regions, None), values]
