"""Numbers as text that a page can carry: arrays of 32 or 16 bits, in base64."""

import base64
from typing import Any

import numpy as np

LEVELS = 65535


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
    low, high = float(array.min()), float(array.max())
    ends, scaled = (low, high), array
    if log:
        low = max(low, 1e-9 * high, np.finfo(np.float32).tiny)
        high = max(high, low)
        ends, scaled = (float(np.log(low)), float(np.log(high))), np.log(np.maximum(array, low))
    span = ends[1] - ends[0] or 1.0
    steps = np.clip(np.rint((scaled - ends[0]) / span * LEVELS), 0, LEVELS).astype("<u2")
    data = base64.b64encode(np.ascontiguousarray(steps).tobytes()).decode("ascii")
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
