"""Whether ranks of truths in their posteriors are as they should be: coverage and histograms."""

import numpy as np
from scipy import stats

LEVELS = (0.5, 0.8, 0.95)
BINS = 10
SURE = 0.99


def judged(ranks):
    """Return coverage with its band, and whether the histogram of ranks is within its own."""
    ranks = np.asarray(ranks)
    count = len(ranks)
    found = {"replicates": count, "holds": True}
    for level in LEVELS:
        inside = float(np.mean(np.abs(ranks - 0.5) <= level / 2))
        low, high = stats.binom.interval(SURE, count, level)
        found[f"coverage_{100 * level:.0f}"] = inside
        found["holds"] &= bool(low <= inside * count <= high)
    heights = np.histogram(ranks, BINS, (0.0, 1.0))[0]
    found["uniform_p"] = float(stats.chisquare(heights).pvalue)
    found["holds"] &= found["uniform_p"] > 1 - SURE
    return found
