"""On which scale each source reports a field, where that is far from the target's."""

import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset, Frame, Observations, Scaling, spread_of

USUAL = 10.0
"""How many times as large as the target's the values of a source may be, and spread as far."""

FEWEST = 10
ROUNDING = 1e-12

Scales = Mapping[str, float]
"""For each source how far it spreads beside the target: 1 where it is usual, 0 of a constant."""


def scales_of(data: Dataset, target: str) -> Scales:
    """Return how far the values of each source spread, as a multiple of the target's.

    Ratios between the usual bounds are left to be learned, from 1, and so are those of spreads
    alone: means over wide regions spread less than the field does. Where few values are, none is
    told.

    >>> import mrgp
    >>> x, y = mrgp.points(np.arange(12.0)[:, None]), 3 + np.sin(np.arange(12.0))
    >>> seen = {"site": y, "slip": 1000 * y, "model": 0.7 * y + 9, "stuck": 0 * y + 7}
    >>> data = Dataset([mrgp.Observations(x, v, name=name) for name, v in seen.items()])
    >>> {name: round(scale) for name, scale in scales_of(data, "site").items()}
    {'site': 1, 'slip': 1000, 'model': 1, 'stuck': 0}
    """
    seen = {o.name: o for o in data.dropna()}
    if len(seen[target]) < FEWEST or is_constant(seen[target]):
        return dict.fromkeys(seen, 1.0)
    return {name: _scale(o, seen[target]) for name, o in seen.items()}


def framed(data: Dataset, scales: Scales) -> Frame:
    """Measure a dataset, its values by the sources that are on the target's scale alone.

    >>> import mrgp
    >>> x, y = mrgp.points([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 2.0])
    >>> data = Dataset([mrgp.Observations(x, k * y, name=f"times {k}") for k in (1, 1000)])
    >>> framed(data, {"times 1": 1.0, "times 1000": 1000.0}).scaling.offset
    array([2.])
    """
    whole = Frame.of(data)
    alike = [o for o in data if scales[o.name] == 1.0]
    if len(alike) == len(data):
        return whole
    scaling = Scaling.of(Dataset(alike))
    return whole._replace(scaling=dataclasses.replace(scaling, centre=whole.scaling.centre))


def level_beside(observed: Observations, level: float) -> float:
    """Return by how much a source is above a level, on average over its values.

    >>> import mrgp
    >>> level_beside(mrgp.Observations(mrgp.points([[0.0], [1.0]]), [7.0, 9.0]), 5.0)
    3.0
    """
    seen = observed.dropna()
    total = np.asarray(seen.support.total)
    return float(total @ seen.y / (total @ total)) - level


def _scale(observed: Observations, target: Observations) -> float:
    if len(observed) < FEWEST:
        return 1.0
    if is_constant(observed):
        return 0.0
    spread = spread_of(observed) / spread_of(target)
    size = np.median(np.abs(_densities(observed))) / np.median(np.abs(_densities(target)))
    other = min(spread, size) > USUAL or max(spread, size) < 1 / USUAL
    return float(spread) if other else 1.0


def is_constant(observed: Observations) -> bool:
    """Tell whether a source has one value throughout.

    >>> import mrgp
    >>> is_constant(mrgp.Observations(mrgp.points([[0.0], [1.0]]), [7.0, 7.0]))
    True
    """
    densities = _densities(observed)
    return bool(not len(densities) or np.ptp(densities) <= ROUNDING * np.abs(densities).max())


def _densities(observed: Observations) -> Float[np.ndarray, " n"]:
    total = np.asarray(observed.support.total)
    return observed.y[total != 0] / total[total != 0]
