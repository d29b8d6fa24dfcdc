"""What a page can carry: mixtures of fewer Gaussians, and numbers of 32 or 16 bits as text."""

import base64
from typing import Any

import numpy as np
from jaxtyping import Float

LEVELS = 65535
TINY = np.finfo(np.float64).tiny

Components = Float[np.ndarray, "_ n"]
Mixture = tuple[Components, Components, Components]
"""Weights, means and variances, the components along the first axis."""


def merged(mixture: Mixture, count: int) -> Mixture:
    """Merge neighbouring components until `count` are left; means and variances stay the same.

    The pair that is merged is, region by region, the one whose loss has the least bound: half the
    growth of the weighted log variances, an upper bound of the Kullback-Leibler divergence.

    >>> weights, means = np.full((3, 1), 1 / 3), np.array([[5.0], [0.0], [0.1]])
    >>> merged((weights, means, np.ones((3, 1))), 2)[1].round(2)
    array([[0.05],
           [5.  ]])
    """
    order = np.argsort(mixture[1], axis=0, kind="stable")
    parts = [np.take_along_axis(np.asarray(part, np.float64), order, 0) for part in mixture]
    columns = np.arange(order.shape[1])
    for left in range(len(order) - 1, count - 1, -1):
        w, m, v = parts
        pairs = _joined((w[:-1], m[:-1], v[:-1]), (w[1:], m[1:], v[1:]))
        loss = pairs[0] * np.log(np.maximum(pairs[2], TINY))
        logs = w * np.log(np.maximum(v, TINY))
        first = np.argmin(loss - logs[:-1] - logs[1:], axis=0)
        # A merged mean lies between the two, so that components stay in order.
        kept = np.arange(left)[:, None] + (np.arange(left)[:, None] > first)
        parts = [np.take_along_axis(part, kept, 0) for part in parts]
        for part, pair in zip(parts, pairs, strict=True):
            part[first, columns] = pair[first, columns]
    return parts[0], parts[1], parts[2]


def _joined(first: Mixture, second: Mixture) -> Mixture:
    """Return the one Gaussian with the moments of two."""
    (w, m, v), (u, n, s) = first, second
    share = w / np.maximum(w + u, TINY)
    mean = share * m + (1 - share) * n
    variance = share * v + (1 - share) * s + share * (1 - share) * (m - n) ** 2
    return w + u, mean, variance


def packed(values: Any) -> dict[str, Any]:
    """Pack numbers in 32 bits each; NaN stays NaN.

    >>> packed([1.0])
    {'type': 'float32', 'data': 'AACAPw=='}
    """
    array = np.ascontiguousarray(values, dtype="<f4")
    return {"type": "float32", "data": base64.b64encode(array.tobytes()).decode("ascii")}


def quantised(values: Any, *, log: bool = False) -> dict[str, Any]:
    """Pack numbers in 16 bits each, between the least and the greatest; on a log scale if asked.

    >>> quantised([1.0, 2.0])
    {'type': 'uint16', 'low': 1.0, 'high': 2.0, 'log': False, 'data': 'AAD//w=='}
    """
    array = np.asarray(values, np.float64)
    low, high, scale = float(array.min()), float(array.max()), np.log if log else np.asarray
    if log:
        low = max(low, 1e-9 * high, np.finfo(np.float32).tiny)
        high = max(high, low)
    span = float(scale(high) - scale(low)) or 1.0
    shares = (scale(np.maximum(array, low)) - scale(low)) / span
    steps = np.clip(np.rint(shares * LEVELS), 0, LEVELS).astype("<u2")
    data = base64.b64encode(steps.tobytes()).decode("ascii")
    return {"type": "uint16", "low": low, "high": high, "log": log, "data": data}


def unpacked(found: dict[str, Any]) -> np.ndarray:
    """Return the numbers as the page will read them.

    >>> unpacked(quantised([1.0, 10.0, 100.0], log=True)).round(2)
    array([  1.,  10., 100.])
    """
    raw = base64.b64decode(found["data"])
    if found["type"] == "float32":
        return np.frombuffer(raw, "<f4").astype(np.float64)
    share = np.frombuffer(raw, "<u2") / LEVELS
    if found["log"]:
        return found["low"] * (found["high"] / found["low"]) ** share
    return found["low"] + (found["high"] - found["low"]) * share
