"""Small simulated worlds, each with one difficulty, to try the automatic choice on."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from mrgp._extras import needed
from mrgp.data import Dataset, Observations
from mrgp.supports import Support, boxes, points, polygons
from mrgp.supports.quadrature import mesh

SPACE = ("east", "north")
NETWORK = ("time", *SPACE)
SIDE = 10.0
FEATURES = 1000
FREEDOM = {"smooth": np.inf, "usual": 3.0, "rough": 1.0}
"""Twice the order of a Matern field; of a squared exponential one, infinity."""

Field = Callable[[Any], Float[np.ndarray, " *n"]]


class World(NamedTuple):
    """Sources, of which the first is the target, and which of its values are held out."""

    data: Dataset
    held: Bool[np.ndarray, " n"]
    day: float | None = None


def field(
    rng: np.random.Generator, reach: Sequence[float], kind: str = "usual", angle: float = 0.0
) -> Field:
    """Draw a function of unit variance with a lengthscale for each input, turned in the plane.

    Random waves have the spectrum of the kernel.

    >>> wave = field(np.random.default_rng(0), (2.0, 2.0), "smooth")
    >>> wave(np.zeros((5, 2))).shape
    (5,)
    """
    waves = rng.normal(size=(FEATURES, len(reach)))
    if np.isfinite(FREEDOM[kind]):
        waves /= np.sqrt(rng.chisquare(FREEDOM[kind], (FEATURES, 1)) / FREEDOM[kind])
    waves /= np.array(reach)
    if angle:
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        waves = waves @ turn
    cosines, sines = rng.normal(size=(2, FEATURES)) / np.sqrt(FEATURES)

    def value(x: Any) -> Float[np.ndarray, " *n"]:
        phase = np.asarray(x) @ waves.T
        return np.cos(phase) @ cosines + np.sin(phase) @ sines

    return value


def quarter(rng: np.random.Generator, labels: Float[np.ndarray, "n *d"]) -> Bool[np.ndarray, " n"]:
    """Choose a quarter of the places, with all their values.

    >>> int(quarter(np.random.default_rng(0), np.repeat(np.arange(8.0), 3)).sum())
    6
    """
    place = np.unique(labels, axis=0, return_inverse=True)[1].reshape(-1)
    count = int(place.max()) + 1
    return np.isin(place, rng.permutation(count)[: max(1, round(count / 4))])


def _scattered(rng: np.random.Generator, wave: Field, count: int, noise: float) -> Observations:
    x = rng.uniform(0, SIDE, (count, 2))
    y = 4.0 + wave(x) + noise * rng.normal(size=count)
    return Observations(points(x, inputs=SPACE), y, name="stations", task="level")


def _cells(lower: Any, side: float, y: Any, name: str) -> Observations:
    return Observations(boxes(lower, lower + side, inputs=SPACE), y, name=name, task="level")


def _corners(side: float, extent: float = SIDE) -> Float[np.ndarray, "n 2"]:
    edges = np.arange(0.0, extent, side)
    return mesh(edges, edges)


def _averages(wave: Field, lower: Any, side: float, nodes: int = 5) -> Float[np.ndarray, " n"]:
    """Return averages over squares."""
    steps = side * (np.arange(nodes) + 0.5) / nodes
    return wave(lower[:, None] + mesh(steps, steps)).mean(1)


def _one_source(
    rng: np.random.Generator,
    kind: str,
    reach: Sequence[float],
    noise: float,
    count: int = 400,
    angle: float = 0.0,
) -> World:
    """Stations that are scattered over a square."""
    seen = _scattered(rng, field(rng, reach, kind, angle), count, noise)
    return World(Dataset([seen]), quarter(rng, seen.support.centres))


def _two_resolutions(rng: np.random.Generator) -> World:
    """Cells of sides 1 and 2, nearly free of noise; half of the small ones are known."""
    wave, fine = field(rng, (5.0, 5.0)), _corners(1.0, 24.0)
    fine, coarse = fine[np.sort(rng.permutation(len(fine))[::2])], _corners(2.0, 24.0)
    made = [
        _cells(lower, side, _averages(wave, lower, side) + 0.01 * rng.normal(size=len(lower)), name)
        for lower, side, name in ((fine, 1.0, "fine"), (coarse, 2.0, "coarse"))
    ]
    return World(Dataset(made), quarter(rng, fine))


def _second_source(rng: np.random.Generator, offset: float, ratio: float) -> World:
    """Stations, and cells that report offset + ratio times the field."""
    wave = field(rng, (2.5, 2.5))
    stations, lower = _scattered(rng, wave, 160, 0.3), _corners(1.0)
    truth = 4.0 + _averages(wave, lower, 1.0) + 0.1 * rng.normal(size=len(lower))
    cells = _cells(lower, 1.0, offset + ratio * truth, "cells")
    return World(Dataset([stations, cells]), quarter(rng, stations.support.centres))


def _shared_errors(rng: np.random.Generator) -> World:
    """Stations, and two gridded products that share an error."""
    wave, error = field(rng, (2.5, 2.5)), field(rng, (1.5, 1.5))
    stations, made = _scattered(rng, wave, 160, 0.3), []
    for side, name in ((1.0, "small"), (2.0, "large")):
        lower = _corners(side)
        y = 4.0 + _averages(lambda x: wave(x) + 0.7 * error(x), lower, side)
        made.append(_cells(lower, side, y + 0.05 * rng.normal(size=len(lower)), name))
    return World(Dataset([stations, *made]), quarter(rng, stations.support.centres))


def _network(rng: np.random.Generator, sites: int, hours: int) -> tuple[Observations, Support]:
    """Return hourly values that are common, smooth in space, and local, short and long."""
    place, time = rng.uniform(0, SIDE, (sites, 2)), np.arange(float(hours))
    x = np.concatenate([np.column_stack([time, np.tile(p, (hours, 1))]) for p in place])
    common, smooth = field(rng, (12.0,), "rough"), field(rng, (8.0, 4.0, 4.0))
    y = 20.0 + 3.0 * common(x[:, :1]) + 1.5 * smooth(x)
    local = [2.0 * rng.normal() + field(rng, (3.0,), "rough")(time[:, None]) for _ in place]
    y += np.concatenate(local) + 0.5 * rng.normal(size=len(x))
    support = points(x, inputs=NETWORK)
    return Observations(support, y, name="sites", task="level"), support


def _local_levels(rng: np.random.Generator) -> World:
    seen, support = _network(rng, 40, 96)
    return World(Dataset([seen]), quarter(rng, support.centres[:, 1:]), 24.0)


def _stuck(rng: np.random.Generator) -> World:
    """A network, and a grid that says the same all the time."""
    seen, support = _network(rng, 24, 48)
    lower = mesh(np.arange(48.0), *2 * [np.array([0.0, SIDE / 2])])
    grid = boxes(lower, lower + [0.0, SIDE / 2, SIDE / 2], inputs=NETWORK)
    stuck = Observations(grid, np.full(len(lower), 7.0), name="grid", task="level")
    return World(Dataset([seen, stuck]), quarter(rng, support.centres[:, 1:]), 24.0)


def _polygons(rng: np.random.Generator) -> World:
    """Districts whose means depend on two known fields, through curves that add."""
    import xarray as xr

    shapely = needed("shapely", 'Polygons need shapely: pip install "mrgp[geo]".')
    whole = shapely.box(0.0, 0.0, SIDE, SIDE)
    sites = shapely.MultiPoint(rng.uniform(0, SIDE, (160, 2)))
    around = shapely.voronoi_polygons(sites, extend_to=whole)
    shapes = [shape.intersection(whole) for shape in around.geoms]
    centres = np.linspace(0.1, SIDE - 0.1, 50)
    at = mesh(centres, centres)
    waves = {name: field(rng, (2.0, 2.0), "smooth") for name in ("height", "traffic")}
    known = {name: (SPACE, wave(at).reshape(50, 50)) for name, wave in waves.items()}
    grid = xr.Dataset(known, dict.fromkeys(SPACE, centres))
    support = polygons(shapes, inputs=SPACE, spacing=0.25).with_covariates(grid)
    nodes = support.quadrature()
    x, weight, wave = np.asarray(nodes.x), np.asarray(nodes.weights), field(rng, (3.0, 3.0))
    values = 2.0 * np.tanh(2.0 * x[..., 2]) + x[..., 3] ** 2 + 0.3 * wave(x[..., :2])
    y = 5.0 + np.sum(weight * values, 1) + 0.1 * rng.normal(size=len(x))
    seen = Observations(support, y, name="districts", task="level")
    return World(Dataset([seen]), quarter(rng, np.arange(float(len(x)))))


WORLDS: dict[str, Callable[[np.random.Generator], World]] = {
    "cells": _two_resolutions,
    "noisy": functools.partial(_one_source, kind="smooth", reach=(2.5, 2.5), noise=2.0),
    "rough": functools.partial(_one_source, kind="rough", reach=(3.0, 3.0), noise=0.1),
    "stretched": functools.partial(_one_source, kind="usual", reach=(5.0, 1.0), noise=0.2),
    "diagonal": functools.partial(
        _one_source, kind="usual", reach=(5.0, 1.0), noise=0.2, angle=np.pi / 4
    ),
    "network": _local_levels,
    "offset": functools.partial(_second_source, offset=3.0, ratio=1.0),
    "ratio": functools.partial(_second_source, offset=0.0, ratio=0.4),
    "thousand": functools.partial(_second_source, offset=0.0, ratio=1000.0),
    "shared": _shared_errors,
    "polygons": _polygons,
    "stuck": _stuck,
    "noise": lambda rng: _one_source(rng, "smooth", (1e9, 1e9), 1.0, 300),
}
"""What each world is hard by."""

WITHOUT_STRUCTURE = ("noise",)
