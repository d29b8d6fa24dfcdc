"""On which scale each source reports a field, where that is far from the target's."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from mrgp.data import Dataset, Frame, Observations, Scaling, spread_of

USUAL = 10.0
"""How many times as far as the target's the values of a source may spread about their level."""

FEWEST = 3
ROUNDING = 1e-12

Scales = Mapping[str, float]
"""For each source how far it spreads beside the target: 1 where it is usual, 0 of a constant."""


def scales_of(data: Dataset, target: str) -> Scales:
    """Return how far the values of each source spread, as a multiple of the target's.

    Ratios between the usual bounds are left to be learned, from 1.

    >>> import mrgp
    >>> x, y = mrgp.points([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 2.0])
    >>> seen = {"site": y, "slip": 1000 * y, "model": 0.7 * y + 9, "stuck": 0 * y + 7}
    >>> data = Dataset([mrgp.Observations(x, v, name=name) for name, v in seen.items()])
    >>> {name: round(scale) for name, scale in scales_of(data, "site").items()}
    {'site': 1, 'slip': 1000, 'model': 1, 'stuck': 0}
    """
    spreads = {o.name: _spread(o) for o in data.dropna()}
    own = spreads[target] or np.nan
    ratios = {name: np.nan if spread is None else spread / own for name, spread in spreads.items()}
    return {n: r if r < 1 / USUAL or r > USUAL else 1.0 for n, r in ratios.items()}


def framed(data: Dataset, scales: Scales) -> Frame:
    """Measure a dataset, its values by the sources that are on the target's scale alone.

    >>> import mrgp
    >>> x, y = mrgp.points([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 2.0])
    >>> data = Dataset([mrgp.Observations(x, k * y, name=f"times {k}") for k in (1, 1000)])
    >>> framed(data, scales_of(data, "times 1")).scaling.offset
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


def _spread(observed: Observations) -> float | None:
    """Return the spread of some values, 0 where they are constant and None where they are few."""
    if len(observed) < FEWEST:
        return None
    total = np.asarray(observed.support.total)
    densities = observed.y[total != 0] / total[total != 0]
    constant = not len(densities) or np.ptp(densities) <= ROUNDING * np.abs(densities).max()
    return 0.0 if constant else spread_of(observed)
