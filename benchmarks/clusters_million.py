"""Cluster a million overlapping supports, in layouts that are easy and in some that are not.

Prints its measurements as JSON. `run.py` runs it with the right environment.
"""

import dataclasses
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import medians, peak_growth, repeat

import mrgp

MOST_MEGABYTES = 2000.0
MOST_SECONDS = 10.0
CHECKED = 1000


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Cells along each side of the grid and random boxes as many; sensors; boxes over one place."""

    side: int = 1000
    sensors: int = 100_000
    stacked: int = 20_000
    sites: int = 50


QUICK = Sizes(side=40, sensors=200, stacked=300, sites=5)

Layout = tuple[list[Any], int | None]


def grid(sizes: Sizes) -> Layout:
    """Make the cells of a grid, which only touch."""
    return [_cells(sizes.side)], sizes.side**2


def grid_and_sensors(sizes: Sizes) -> Layout:
    """Put sensors into the cells of a grid: as many clusters as cells."""
    rng = np.random.default_rng(0)
    sensors = mrgp.points(rng.uniform(0.0, 0.1 * sizes.side, (sizes.sensors, 2)))
    return [_cells(sizes.side), sensors], sizes.side**2


def random_boxes(sizes: Sizes) -> Layout:
    """Scatter boxes that overlap about three others each."""
    rng = np.random.default_rng(0)
    lower = rng.uniform(0.0, sizes.side, (sizes.side**2, 2))
    return [mrgp.boxes(lower, lower + rng.uniform(0.3, 1.4, lower.shape))], None


def random_boxes_in_three_inputs(sizes: Sizes) -> Layout:
    """Scatter boxes over three inputs that overlap about five others each."""
    rng = np.random.default_rng(0)
    lower = rng.uniform(0.0, sizes.side ** (2 / 3), (sizes.side**2, 3))
    return [mrgp.boxes(lower, lower + rng.uniform(0.3, 1.4, lower.shape))], None


def all_over_one_place(sizes: Sizes) -> Layout:
    """Let every box overlap every other: pairs are half the square of the boxes."""
    rng = np.random.default_rng(0)
    shape = (sizes.stacked, 2)
    return [mrgp.boxes(-rng.uniform(0.1, 1.0, shape), rng.uniform(0.1, 1.0, shape))], 1


def hours_at_sites_and_days(sizes: Sizes) -> Layout:
    """Observe sites by the hour, and the whole region by the day: one cluster a day."""
    rng = np.random.default_rng(0)
    days = max(2, sizes.side**2 // (24 * sizes.sites))
    place = np.repeat(rng.uniform(0.0, 1.0, (sizes.sites, 2)), 24 * days, 0)
    hour = np.tile(np.arange(24.0 * days), sizes.sites)[:, None]
    hourly = mrgp.boxes(np.hstack([hour, place]), np.hstack([hour + 1.0, place]))
    day = np.column_stack([24.0 * np.arange(days), np.zeros((days, 2))])
    return [hourly, mrgp.boxes(day, day + [24.0, 1.0, 1.0])], days


LAYOUTS: dict[str, Callable[[Sizes], Layout]] = {
    "cells of a grid": grid,
    "cells of a grid, sensors": grid_and_sensors,
    "random boxes": random_boxes,
    "random boxes, 3 inputs": random_boxes_in_three_inputs,
    "boxes over one place": all_over_one_place,
    "hours at sites, days": hours_at_sites_and_days,
}


def _cells(side: int) -> Any:
    """Return cells of width 0.1 about their centres, as grids come: their edges are rounded."""
    axis = 0.05 + 0.1 * np.arange(side)
    centre = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    return mrgp.boxes(centre - 0.05, centre + 0.05)


def check_all_pairs() -> None:
    """Stop where the clusters of some boxes are not those of all their pairs."""
    rng = np.random.default_rng(1)
    lower = rng.uniform(0.0, CHECKED**0.5, (CHECKED, 2))
    upper = lower + rng.uniform(0.3, 1.4, lower.shape)
    together = np.all((lower[:, None] < upper) & (lower < upper[:, None]), -1)
    for _ in range(10):
        together = together.astype(np.float32) @ together > 0
    (found,) = mrgp.overlap_clusters([mrgp.boxes(lower, upper)]).labels
    if not np.array_equal(found[:, None] == found, together):
        raise SystemExit("The clusters are not those of all pairs.")


def measure_one(name: str, sizes: Sizes) -> dict[str, float]:
    """Cluster one layout once."""
    supports, expected = LAYOUTS[name](sizes)
    seconds, found = [], []

    def cluster() -> None:
        found.append(mrgp.overlap_clusters(supports))

    peak = peak_growth(lambda: seconds.extend(repeat(cluster, 1)))
    if expected not in (None, found[0].count):
        raise SystemExit(f"{name}: {found[0].count} clusters, not {expected}.")
    counts = {"observations": int(found[0].sizes.sum()), "clusters": found[0].count}
    return counts | medians(seconds) | {"peak MB above baseline": peak}


def measure(sizes: Sizes) -> dict[str, Any]:
    """Check against all pairs, and measure every layout."""
    check_all_pairs()
    rows = {name: measure_one(name, sizes) for name in LAYOUTS}
    return {
        "sizes": dataclasses.asdict(sizes),
        "rows": rows,
        "requirements": requirements(rows) if sizes == Sizes() else [],
    }


def requirements(rows: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """State what must hold of the slowest and the largest layout."""
    memory = max(row["peak MB above baseline"] for row in rows.values())
    seconds = max(row["cpu seconds"] for row in rows.values())
    return [
        {
            "what": "clusters: memory above baseline",
            "unit": "MB",
            "measured": memory,
            "most": MOST_MEGABYTES,
        },
        {"what": "clusters: time", "unit": "cpu s", "measured": seconds, "most": MOST_SECONDS},
    ]


def main(arguments: list[str]) -> None:
    """Measure at full size, or quickly."""
    print(json.dumps(measure(QUICK if "--quick" in arguments else Sizes())))


if __name__ == "__main__":
    main(sys.argv[1:])
