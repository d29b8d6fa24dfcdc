"""Mixtures of fewer Gaussians, close to those of more: what a page can carry."""

import numpy as np
from jaxtyping import Float

Components = Float[np.ndarray, "_ n"]
Mixture = tuple[Components, Components, Components]
"""Weights, means and variances, the components along the first axis."""

_TINY = np.finfo(np.float64).tiny


def merged(mixture: Mixture, count: int) -> Mixture:
    """Merge neighbouring components until `count` are left; means and variances stay the same.

    The pair that is merged is, region by region, the one whose loss has the least bound: half the
    growth of the weighted log variances, an upper bound of the Kullback-Leibler divergence.

    >>> weights, means = np.full((3, 1), 1 / 3), np.array([[5.0], [0.0], [0.1]])
    >>> merged((weights, means, np.ones((3, 1))), 2)[1].round(2)
    array([[0.05],
           [5.  ]])
    """
    weights, means, variances = (np.array(part, np.float64) for part in mixture)
    if len(means) <= count:
        return weights, means, variances
    order = np.argsort(means, axis=0, kind="stable")
    parts = tuple(np.take_along_axis(part, order, 0) for part in (weights, means, variances))
    columns = np.arange(means.shape[1])
    for left in range(len(means) - 1, count - 1, -1):
        pairs = _joined(*(part[:-1] for part in parts), *(part[1:] for part in parts))
        loss = pairs[0] * np.log(np.maximum(pairs[2], _TINY))
        logs = parts[0] * np.log(np.maximum(parts[2], _TINY))
        first = np.argmin(loss - logs[:-1] - logs[1:], axis=0)
        # A merged mean lies between the two, so that components stay in order.
        kept = np.arange(left)[:, None] + (np.arange(left)[:, None] > first)
        parts = tuple(np.take_along_axis(part, kept, 0) for part in parts)
        for part, pair in zip(parts, pairs, strict=True):
            part[first, columns] = pair[first, columns]
    return parts[0], parts[1], parts[2]


def _joined(
    w: Components, m: Components, v: Components, u: Components, n: Components, s: Components
) -> Mixture:
    """Return the one Gaussian with the moments of two."""
    total = np.maximum(w + u, _TINY)
    share = w / total
    mean = share * m + (1 - share) * n
    variance = share * v + (1 - share) * s + share * (1 - share) * (m - n) ** 2
    return w + u, mean, variance
