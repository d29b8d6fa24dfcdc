"""The learned map from a source to the target of a deep model, and how sure it is."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from mrgp._types import float64
from mrgp.inference import Fit
from mrgp.prediction.values import require_share

POINTS = 101
Vector = Float[np.ndarray, " n"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class BiasMap:
    """What the target is expected to be where a source's own field has given values.

    `mean` and `std` are those of the map; `scatter` is the standard deviation of the target about
    it that the map does not explain. `at` has the other inputs of a map that changes over them.
    `units` are those of the target, `source_units` those of the values.

    >>> values = np.array([0.0, 1.0])
    >>> found = BiasMap("model", "sensors", "no2", None, None, values, 2 * values, values, 0.0, {})
    >>> low, high = found.interval(0.95)
    >>> low.round(2), high.round(2)
    (array([0.  , 0.04]), array([0.  , 3.96]))
    """

    source: str
    target: str
    task: str
    units: str | None
    source_units: str | None
    values: Vector
    mean: Vector
    std: Vector
    scatter: float
    at: dict[str, float]

    def interval(self, level: float = 0.95) -> tuple[Vector, Vector]:
        """Return the central interval of the map."""
        require_share(level, "interval: the level")
        reach = ndtri(0.5 + 0.5 * level) * self.std
        return self.mean - reach, self.mean + reach

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a data frame: the source's value, and the target's mean, std and interval."""
        import pandas as pd

        low, high = self.interval(level)
        percent = f"{100 * level:g}"
        columns = {
            self.source: self.values,
            "mean": self.mean,
            "std": self.std,
            f"lower_{percent}": low,
            f"upper_{percent}": high,
        }
        beside = {name: np.full(len(self.values), value) for name, value in self.at.items()}
        return pd.DataFrame(columns | beside)

    def plot(self, axes: Any = None) -> Any:
        """Draw the map with its 95 % interval, beside the line of no bias; return the axes."""
        from mrgp.plotting import plot_bias_map

        return plot_bias_map(self, axes)

    def __repr__(self) -> str:
        units = f" {self.units}" if self.units else ""
        given = f" {self.source_units}" if self.source_units else ""
        place = "".join(f", {name} {value:.4g}" for name, value in self.at.items())
        return (
            f"BiasMap({self.source} to {self.target}, {self.task}{place}:"
            f" {self.values[0]:.4g} to {self.values[-1]:.4g}{given} becomes {self.mean[0]:.4g} to"
            f" {self.mean[-1]:.4g}{units}, sd up to {self.std.max():.3g})"
        )


@float64
def bias_map(fit: Fit, source: Any, values: Any = None, at: Any = None) -> BiasMap:
    """Return the map that a deep model learned from a source, or another task, to its target.

    >>> import mrgp
    >>> x = np.linspace(0.0, 6.0, 30)[:, None]
    >>> sat = mrgp.Observations(mrgp.points(x), 0.5 * np.sin(x[:, 0]), name="sat")
    >>> laqn = mrgp.Observations(mrgp.points(x[::2]), np.sin(x[::2, 0]), name="laqn")
    >>> fit = mrgp.fit(mrgp.MRDGP(target="laqn"), mrgp.Dataset([laqn, sat]))
    >>> bias_map(fit, "sat", values=[0.25]).mean.round(1)
    array([0.5])
    """
    maps = fit.model.maps
    if not maps and fit.recipe.fitted != "parts":
        raise ValueError(
            f"bias_map: {type(fit.recipe).__name__} learns no maps between sources; fit"
            ' mrgp.MRDGP() or mrgp.Cascade(), or see parameters() of MRGP(bias="affine").'
        )
    if source not in maps:
        raise ValueError(
            f"bias_map: there is no map from {source!r}; there are maps from"
            f" {[name for name in maps if isinstance(name, str)]}."
        )
    found = maps[source]
    if values is None:
        values = np.linspace(*found.range(), POINTS)
    values = np.atleast_1d(np.asarray(values, np.float64))
    beside = _beside(at, found.beside, found.centre())
    mean, variance = found.evaluate(fit.state, values, np.array(list(beside.values())))
    return BiasMap(
        source=found.label,
        target=found.target,
        task=found.task,
        units=fit.units.get(found.task),
        source_units=fit.units.get(found.source_task),
        values=values,
        mean=mean,
        std=np.sqrt(variance),
        scatter=found.scatter(),
        at=beside,
    )


def _beside(at: Any, names: tuple[str, ...], centre: Vector) -> dict[str, float]:
    """Return the place at which a map is looked at: the one given, or the middle of the data."""
    given = {} if at is None else at
    if not isinstance(given, Mapping) or any(name not in names for name in given):
        raise ValueError(
            f"bias_map: at= maps inputs over which the map changes, {names}, to numbers; got"
            f" {at!r}."
        )
    return {name: float(given.get(name, c)) for name, c in zip(names, centre, strict=True)}
