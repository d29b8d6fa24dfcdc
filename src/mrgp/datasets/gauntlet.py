"""Sets of data that nothing was tuned on, real and simulated: a quarter of the places held out."""

import dataclasses
import datetime
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool

from mrgp.data import Dataset, Observations
from mrgp.datasets.cases import Recording, check_name, hold_out, measured
from mrgp.datasets.fusion import cells, monitors
from mrgp.datasets.london import block_means, hourly_no2, in_kilometres
from mrgp.datasets.worlds import WORLDS
from mrgp.supports import Support, nodes, with_common_tables, with_rows

DAYS = ("01-10", "02-24", "04-10", "05-25", "07-09", "08-23", "10-07", "11-21")
LONDON = {
    "london": (DAYS, 3, False),
    "london-blocks": (DAYS[::2], 3, True),
    "london-month": (("02-01", "06-01", "10-01"), 30, False),
}
"""Starts in 2022, length in days, and whether there are blocks."""
SEUS = {"seus": (), "seus-cmaq": ("cmaq",), "seus-cmaq-modis": ("cmaq", "modis")}
SEEDS = ("0", "1")
SETS = (*LONDON, *SEUS, *WORLDS)
COMPLETE = 0.75
MOST_SITES = 54
THIN = {"cmaq": 4, "modis": 3}
SHIFT, STRETCH, UNIT = 8760.0, 2.5, 0.1


def gauntlet_starts(world: str) -> tuple[str, ...]:
    """Return what a set is repeated over: days on which it starts, folds or seeds.

    >>> gauntlet_starts("london-month"), gauntlet_starts("noise")
    (('02-01', '06-01', '10-01'), ('0', '1'))
    """
    check_name("gauntlet", world, SETS, "set", "the sets")
    return LONDON[world][0] if world in LONDON else SEEDS


def gauntlet(start: str, world: str, disguised: bool = False) -> Recording:
    """Hold a quarter of the places of a set out.

    `london`: hourly NO2 of three days of 2022; `london-blocks`: beside blocks made as in
    `london_no2` from a third of the sites, which are neither trained on nor scored; `london-month`:
    thirty days of at most 54 sites. `seus`: daily PM2.5 at monitors, alone, with every fourth cell
    of CMAQ, and with every third of MODIS as a task of its own. Others are simulated. `means` has
    those over the days (of hourly values) and the whole window at places held out. `disguised` has
    other names of sources and tasks, other dates, places mirrored and farther apart, other units.

    >>> case = gauntlet("0", "network")
    >>> len(case.data["sites"]), len(case.y), {name: len(m) for name, m in case.means.items()}
    (2880, 960, {'day': 40, 'window': 10})
    """
    check_name("gauntlet", start, gauntlet_starts(world), f"start of {world!r}", "those")
    if world in LONDON:
        made = _london(start, *LONDON[world][1:])
    elif world in SEUS:
        made = _seus(int(start), SEUS[world])
    else:
        found = WORLDS[world](np.random.default_rng([int(start), zlib.crc32(world.encode())]))
        made = case_of(found.data, found.held, found.day)
    return disguise(made) if disguised else made


def case_of(
    data: Dataset,
    held: Bool[np.ndarray, " n"],
    day: float | None = None,
    columns: Mapping[str, Any] | None = None,
    windows: bool = False,
) -> Recording:
    """Hold places of the first source out, with means over days and the window if there is time.

    `columns` are covariates of its rows.
    """
    target, *others = data
    if columns:
        known = {name: _known(np.asarray(column), ~held) for name, column in columns.items()}
        target = target.replace(support=with_rows(target.support, known, "gauntlet"))
    # Other sources read the field without the effects of these columns.
    seen = [target, *others]
    supports, _ = with_common_tables([o.support for o in seen], [o.label for o in seen])
    data = Dataset(o.replace(support=s) for o, s in zip(seen, supports, strict=True))
    made = hold_out(data, target.process, held)
    lengths = {} if day is None else {"day": day}
    lengths |= {"window": np.inf} if windows or lengths else {}
    means = {name: _means(made.held_out, length) for name, length in lengths.items()}
    return dataclasses.replace(made, means=means)


def _known(column: np.ndarray, seen: Bool[np.ndarray, " n"]) -> np.ndarray:
    """Return categories; one that is nowhere to be learned is the most frequent."""
    levels, counts = np.unique(column[seen], return_counts=True)
    return np.where(np.isin(column, levels), column, levels[counts.argmax()])


def _means(gone: Observations, length: float) -> Observations:
    """Average over windows of time, place by place, with a node at each time that has a value."""
    gone = gone.dropna()
    x: Any = gone.support.centres
    clock: Any = gone.support.clock
    place = np.unique(np.delete(x, clock, 1), axis=0, return_inverse=True)[1].reshape(-1)
    window = np.floor(x[:, clock] / length)
    _, first, group = np.unique(
        np.stack([place, window]), axis=1, return_index=True, return_inverse=True
    )
    group = group.reshape(-1)
    count = np.bincount(group)
    order = np.argsort(group, kind="stable")
    rank = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    spread = np.repeat(x[first][:, None], count.max(), 1)
    weight = np.zeros(spread.shape[:2])
    spread[group[order], rank], weight[group[order], rank] = x[order], 1.0
    support = dataclasses.replace(nodes(spread, weight), **gone.support.labels)
    means = np.bincount(group, weights=gone.y) / count
    return gone.replace(support=support, y=means)


def _london(start: str, days: int, blocks: bool) -> Recording:
    """Return hourly NO2 of sites that are nearly complete, with their types."""
    day = datetime.date.fromisoformat(f"2022-{start}").timetuple().tm_yday
    table = hourly_no2(day, days, COMPLETE)
    rng = np.random.default_rng(zlib.crc32(start.encode()))
    sites = rng.permutation(np.unique(table["site"]))
    apart = sites[: len(sites) // 3] if blocks else sites[MOST_SITES if days > 3 else len(sites) :]
    hourly = table[~table["site"].isin(apart)]
    where = in_kilometres(hourly["time"], hourly[["lon", "lat"]].to_numpy())
    seen = [measured(where, hourly["no2"], "no2", "sites")]
    if blocks:
        seen.append(block_means(table[table["site"].isin(apart)]))
    kept = sites[~np.isin(sites, apart)]
    held = hourly["site"].isin(kept[: round(len(kept) / 4)]).to_numpy()
    return case_of(Dataset(seen), held, 24.0, {"type": hourly["type"].to_numpy(str)})


def _seus(split: int, others: tuple[str, ...]) -> Recording:
    """Hold the monitors of two of the eight folds out, beside grids."""
    seen, fold = monitors()
    grids = [cells(THIN[name], aod=name == "modis") for name in others]
    return case_of(Dataset([seen, *grids]), np.isin(fold, (2 * split, 2 * split + 1)), windows=True)


def disguise(case: Recording) -> Recording:
    """Rename, shift, mirror and rescale a set: what is chosen for it must not change.

    >>> plain, other = (gauntlet("0", "noise", disguised=d) for d in (False, True))
    >>> other.data.processes, float(other.y[0] / plain.y[0])
    ((('source1', 'quantity1'),), 0.1)
    """
    tasks = {task: f"quantity{i + 1}" for i, task in enumerate(case.data.tasks)}
    names = {name: f"source{i + 1}" for i, name in enumerate(case.data.sources)}

    def other(seen: Observations) -> Observations:
        renamed = {"task": tasks[seen.task], "name": names[seen.name], "units": None}
        return seen.replace(support=_moved(seen.support), y=UNIT * seen.y, **renamed)

    return dataclasses.replace(
        case,
        data=Dataset(map(other, case.data)),
        support=_moved(case.support),
        y=UNIT * case.y,
        target=names[case.target],
        task=tasks[case.task],
        means={name: other(mean) for name, mean in case.means.items()},
    )


def _moved(support: Support) -> Support:
    """Shift time; mirror the first input of space, and stretch all of it."""
    if any(not field.in_rows for field in support.covariates or ()):
        raise ValueError("gauntlet: a set with covariates of its supports cannot be disguised.")
    scale, offset = np.full(support.dimension, STRETCH), np.zeros(support.dimension)
    scale[support.dimension - len(support.covariates or ()) :] = 1.0
    clock = support.clock
    if clock is not None:
        scale[clock], offset[clock] = 1.0, SHIFT
    scale[next(i for i in range(support.dimension) if i != clock)] *= -1.0
    sides = {n: getattr(support, n) for n in ("x", "lower", "upper") if hasattr(support, n)}
    moved = {name: np.asarray(side) * scale + offset for name, side in sides.items()}
    if "lower" in moved:
        ends = moved["lower"], moved["upper"]
        moved = {"lower": np.minimum(*ends), "upper": np.maximum(*ends)}
    inputs = support.inputs and tuple(
        {"lon": "east", "lat": "north"}.get(n, n) for n in support.inputs
    )
    return dataclasses.replace(support, axes=None, inputs=inputs, **moved)
