"""How costs grow: the power of a size with which they go, fitted over variants that have sizes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

SIZED = re.compile(r"(?P<quantity>.+)-(?P<size>\d+)")


def exponents(variants: Mapping[str, Any], costs: Sequence[str]) -> dict[str, Any]:
    """Fit the powers of sizes with which costs grow: {quantity: {model: {cost: {...}}}}.

    Variants are named after what changes and its size, as `values-500`. `overall` is the slope of
    the logarithm of a cost over that of the size, by least squares; `last` that between the two
    largest sizes, where what does not grow counts least.

    >>> found = {f"values-{n}": {"mr-gp": {"seconds": {"mean": 0.5 * n}}} for n in (10, 100)}
    >>> exponents(found, ["seconds"])["values"]["mr-gp"]["seconds"]
    {'overall': 1.0, 'last': 1.0, 'from': 10, 'to': 100}
    """
    measured: dict[tuple[str, str, str], dict[int, float]] = {}
    for variant, models in variants.items():
        named = SIZED.fullmatch(variant)
        if named is None:
            continue
        for model, metrics in models.items():
            for cost in (cost for cost in costs if cost in metrics):
                mine = measured.setdefault((named["quantity"], model, cost), {})
                size, spent = int(named["size"]), float(metrics[cost]["mean"])
                # Only these have logarithms.
                if size > 0 and 0 < spent < np.inf:
                    mine[size] = spent
    found: dict[str, Any] = {}
    for (quantity, model, cost), by_size in measured.items():
        sizes = sorted(by_size)
        if len(sizes) < 2:
            continue
        x, y = np.log(sizes), np.log([by_size[size] for size in sizes])
        overall = float(np.polyfit(x, y, 1)[0])
        last = float((y[-1] - y[-2]) / (x[-1] - x[-2]))
        ends = {"from": sizes[0], "to": sizes[-1]}
        fitted = {"overall": round(overall, 3), "last": round(last, 3), **ends}
        found.setdefault(quantity, {}).setdefault(model, {})[cost] = fitted
    return found


def exponents_table(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table of exponents: overall, and at the largest sizes.

    >>> one = {"overall": 0.9, "last": 1.0, "from": 10, "to": 100}
    >>> exponents_table({"values": {"mr-gp": {"seconds": one}}})[1]
    [['values', '10 to 100', 'mr-gp', '0.90 (1.00)']]
    """
    costs = list(dict.fromkeys(c for m in found.values() for of in m.values() for c in of))
    rows = []
    for quantity, models in found.items():
        for model, of in models.items():
            ends = next(iter(of.values()))
            cells = [
                f"{of[c]['overall']:.2f} ({of[c]['last']:.2f})" if c in of else "" for c in costs
            ]
            rows.append([quantity, f"{ends['from']} to {ends['to']}", model, *cells])
    return ["grows with", "sizes", "model", *costs], rows
