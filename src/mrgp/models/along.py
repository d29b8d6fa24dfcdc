"""When a linear model is solved along time: by its kernels, its supports, and the cost."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset
from mrgp.gp import Inducing, Markov, extent_of, refusal, start_locations, states_of, work_of
from mrgp.kernels import Kernel
from mrgp.parameters import unwrap
from mrgp.supports import Places, Points, Rule, Support, taken_apart

FEWEST = 400
EXACT_LIMIT = 4000
"""Values up to which a dense covariance of all of them is affordable."""
MOST_STATES, MOST_WORK = 1500, 5e10
"""States that are exact in space, and multiplications of an evaluation that is sparse there."""
USUAL = 200
"""Inducing places, where places are many and no number is given."""


def along_time(
    kernels: Sequence[Kernel],
    data: Dataset,
    rule: Rule,
    wanted: bool,
    inducing: Any = None,
    centre: Any = 0.0,
    seed: int = 0,
) -> Markov | None:
    """Return the solver along time, or None where it does not apply or costs more than a dense one.

    Where it is `wanted`, it is returned whatever it costs, or an error says why it does not apply.
    It is sparse in space if `inducing` says so, or where states would be many; unless it is
    wanted, a dense one comes first where there are few values. `centre` is what inputs are shifted
    by.
    """
    time = data.clock
    if time is None:
        if not wanted:
            return None
        raise ValueError(
            f'method="markov" runs along time, and none of the inputs {data.inputs} is named so;'
            ' name it by inputs=, as inputs=("lon", "lat", "time").'
        )
    seen = data.dropna()
    count = sum(map(len, seen))
    if count < FEWEST and not wanted:
        return None
    bare = tuple(map(unwrap, kernels))
    reason = refusal(bare, time, {o.label: o.support for o in seen}, data.inputs)
    if reason is not None:
        if not wanted:
            return None
        raise ValueError(
            f'method="markov": {reason}. Other methods take any kernel and support: "exact" for'
            ' few values, "collapsed" for more.'
        )
    solver = Markov(tuple(kernels), time=time, rule=rule)
    supports = [o.support for o in seen]
    steps, states, rows = states_of(bare, time, supports)
    cheaper = work_of(steps, states, rows) < float(count) ** 3
    if inducing is None and states <= MOST_STATES:
        return solver if wanted or cheaper else None
    if not wanted and count <= EXACT_LIMIT:
        return None
    placed = inducing_places(Inducing.parse(inducing), supports, time, centre, bare[0], seed)
    if wanted:
        return solver.on(placed)
    affordable = placed and work_of(*states_of(bare, time, supports, placed)) <= MOST_WORK
    return solver.on(placed) if affordable else None


def inducing_places(
    inducing: Inducing,
    supports: Sequence[Support],
    time: int,
    centre: Any,
    kernel: Kernel,
    seed: int,
) -> tuple[Support, ...]:
    """Place inducing inputs among the places of supports; there are none where places are fewer.

    Sites that are few beside cells have one each: between cells, what only they see is lost.

    >>> from mrgp import Matern12, points
    >>> kernel, x = Matern12(1.0, variance=1.0, dims=0), points([[0.0, 5.0], [2.0, 6.0]])
    >>> (one,) = inducing_places(Inducing(locations=[[1.0, 7.0]]), [x], 1, [0.5, 0.0], kernel, 0)
    >>> one.x.tolist()
    [[0.5, 0.0]]
    """
    if inducing.train:
        raise ValueError("inducing: places of a fit along time are not trained; leave train= out.")
    parts = [part for support in supports for part in taken_apart(support, time)]
    places = Places.of(parts, extent_of(supports))
    number = inducing.number or USUAL
    if inducing.locations is None and len(places) <= number:
        return ()
    most = number // 2 if inducing.locations is None else 0
    sites, others = _sites_and_others(places.groups, most)
    inducing = dataclasses.replace(inducing, number=number - len(sites))
    found = start_locations(inducing, others, np.asarray(centre), kernel, seed)
    x = np.array(unwrap(found))
    if inducing.locations is None:
        x = np.concatenate([sites, x]) - centre
    x[:, time] = 0.0
    return (Points(x, np.ones(len(x))),)


def _sites_and_others(
    groups: tuple[Support, ...], most: int
) -> tuple[Float[np.ndarray, "n d"], tuple[Support, ...]]:
    """Return points among places, no more than so many, and all else; no points otherwise."""
    points = [group for group in groups if isinstance(group, Points)]
    others = tuple(group for group in groups if not isinstance(group, Points))
    count = sum(map(len, points))
    if not others or not 0 < count <= most:
        return np.zeros((0, groups[0].dimension)), groups
    return np.concatenate([np.asarray(group.x) for group in points]), others
