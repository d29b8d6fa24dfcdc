"""What is given for observation processes: by (source, task), then by source."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Process = tuple[str, str]
"""A source and a task."""


def by_process(given: Any, process: Process, default: Any = None) -> Any:
    """Return what is given for a process: by (source, task), by source, or one for all.

    >>> given = {"satellite": 1, ("sites", "no2"): 2}
    >>> [by_process(given, (source, "no2"), 3) for source in ("satellite", "sites", "model")]
    [1, 2, 3]
    >>> by_process("one for all", ("sites", "no2"))
    'one for all'
    """
    if not isinstance(given, Mapping):
        return given
    return given.get(process, given.get(process[0], default))


def require_processes(names: Iterable[Any], processes: tuple[Process, ...], where: str) -> None:
    """Refuse names that are neither a source nor a (source, task).

    >>> require_processes(["satellite"], (("sites", "no2"),), "weights")
    Traceback (most recent call last):
    ValueError: weights: 'satellite' is neither a source nor a (source, task) of the data, which...
    """
    known = {*processes, *(source for source, _ in processes)}
    for name in names:
        if name not in known:
            raise ValueError(
                f"{where}: {name!r} is neither a source nor a (source, task) of the data, which has"
                f" {processes}."
            )


def process_weights(
    weights: Mapping[Any, Any] | None, processes: tuple[Process, ...]
) -> dict[Process, float]:
    """Return the composite weight of each process: looked up by (source, task), then by source.

    >>> process_weights({"satellite": 0.5}, (("satellite", "no2"), ("sites", "no2")))
    {('satellite', 'no2'): 0.5, ('sites', 'no2'): 1.0}
    """
    if weights is not None and not isinstance(weights, Mapping):
        raise TypeError(f"weights= takes a mapping such as {{'satellite': 0.5}}; got {weights!r}.")
    weights = {} if weights is None else dict(weights)
    require_processes(weights, processes, "weights")
    for name, value in weights.items():
        number = isinstance(value, int | float | np.number)
        if not number or not 0 < float(value) < np.inf:
            raise ValueError(f"weights: the weight of {name!r} must be positive; got {value!r}.")
    return {p: float(by_process(weights, p, 1.0)) for p in processes}
