"""How many values data have, and a number that tells other data apart."""

import zlib

import numpy as np

from mrgp.data import Dataset


def checksum_of(data: Dataset) -> int:
    """Return a number that tells other values, or other regions, apart."""
    found = 0
    for o in data:
        seen = o.dropna()
        noise = np.zeros(0) if seen.noise_variance is None else seen.noise_variance
        support = seen.support
        beside = [a for a in (seen.exposure, seen.trials, seen.censored) if a is not None]
        for array in (seen.y, noise, *support.bounds, support.moment, support.total, *beside):
            found = zlib.crc32(np.ascontiguousarray(array, np.float64).tobytes(), found)
    return found


def counts_of(data: Dataset) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many values of each process are observed, and how many missing."""
    return {o.process: (o.count, o.missing) for o in data}
