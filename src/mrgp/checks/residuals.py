"""Are leave-one-out residuals what the model expects? A short account (theory 2.6)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from mrgp.supports import place_in_words

FEWEST = 5
CLEAR = 3.0
LEAST = 1e-12
EDGE = 1.96
RARE = 0.01


class ResidualCheck(NamedTuple):
    """Moments of standardised residuals of one source, beside what the model expects of them.

    `spread` is their root mean square, `beyond` the share farther than 1.96 from zero, `far` the
    number so far out that one such value would be rare among as many, and `neighbours` their mean
    product with the residual of the value that the model ties most closely to each, over the mean
    square. `*_z` says how far from the expected value each lies, in standard deviations under the
    model.
    """

    values: int
    mean: float
    mean_z: float
    spread: float
    spread_z: float
    beyond: float
    far: int
    neighbours: float
    expected_neighbours: float
    neighbours_sd: float

    @property
    def neighbours_z(self) -> float:
        """How far the product of neighbours lies from the one expected."""
        return (self.neighbours - self.expected_neighbours) / self.neighbours_sd

    @property
    def verdicts(self) -> list[str]:
        """What the residuals say of the model, where they say anything."""
        if self.values < FEWEST:
            return [f"too few values ({self.values}) to judge"]
        return self.doubts or ["as the model expects"]

    @property
    def doubts(self) -> list[str]:
        """What the residuals say against the model; mostly nothing, as of too few values."""
        found = []
        if self.values < FEWEST:
            return found
        if abs(self.mean_z) > CLEAR:
            side = "above" if self.mean > 0 else "below"
            found.append(f"values lie {side} what the others say: look for a bias of this source")
        if self.spread_z > CLEAR:
            found.append(
                "values miss by more than the model says: its noise or its variance is low"
            )
        if self.spread_z < -CLEAR:
            found.append("values miss by less than the model says: its noise is too large")
        if self.neighbours_z > CLEAR:
            found.append(
                "neighbours miss together: a trend, an input or a shorter scale is missing"
            )
        if self.neighbours_z < -CLEAR:
            found.append("neighbours miss in turns: the field is smoother than the model has it")
        if self.far:
            found.append(f"{self.far} far outside, which is rare: look for faults")
        return found


class Worst(NamedTuple):
    """A value far from what the others say, and where it is; `row` counts observed values."""

    source: str
    row: int
    place: str
    value: float
    mean: float
    sd: float

    @classmethod
    def of(cls, name: str, row: int, part: Any) -> "Worst":
        """Return one row of a source."""
        mean, sd = float(part.mean[row]), float(np.sqrt(part.variance[row]))
        return cls(name, row, place_in_words(part.support, row), float(part.y[row]), mean, sd)

    @property
    def residual(self) -> float:
        """Value minus prediction, in standard deviations."""
        return (self.value - self.mean) / self.sd


def check_residuals(
    residuals: Float[np.ndarray, " n"],
    covariance: Float[np.ndarray, "n n"],
    ties: Float[np.ndarray, "n n"],
) -> ResidualCheck:
    """Compare residuals with their covariance under the model; `ties` tells who is near whom.

    Residuals of neighbours are correlated even where the model is right: each was predicted from
    the other. What counts is the distance from that expectation.
    """
    n = len(residuals)
    square = float(np.mean(residuals**2))
    product, expected, sd = 0.0, 0.0, 1.0
    if n > 1:
        near = _neighbours(ties)
        pairs = np.zeros((n, n))
        pairs[np.arange(n), near] = 1.0 / n
        pairs = 0.5 * (pairs + pairs.T)
        product = float(residuals @ pairs @ residuals) / square if square else 0.0
        expected = float(np.sum(pairs * covariance))
        # The mean square in the denominator takes off what the two have in common.
        pairs = pairs - expected / n * np.eye(n)
        moved = pairs @ covariance
        sd = float(np.sqrt(2 * np.sum(moved * moved.T)))
    return ResidualCheck(
        values=n,
        mean=float(residuals.mean()),
        mean_z=float(residuals.sum() / np.sqrt(max(covariance.sum(), LEAST))),
        spread=float(np.sqrt(square)),
        spread_z=float((square - 1) * n / np.sqrt(2 * np.sum(covariance**2))),
        beyond=float(np.mean(np.abs(residuals) > EDGE)),
        far=int(np.sum(np.abs(residuals) > -ndtri(0.5 * RARE / n))),
        neighbours=product,
        expected_neighbours=expected,
        neighbours_sd=sd,
    )


def _neighbours(ties: Float[np.ndarray, "n n"]) -> np.ndarray:
    """Return for each value the one most correlated with it."""
    close = ties / np.sqrt(np.diag(ties))
    np.fill_diagonal(close, -np.inf)
    return np.argmax(close, 1)


def describe(
    named: Mapping[str, Any], checks: Sequence[ResidualCheck], worst: Sequence[Worst]
) -> str:
    """Write the account: a few lines for each source, and the values that are farthest."""
    lines = ["Every value from all the others, with the parameters of the fit"]
    for (name, part), check in zip(named.items(), checks, strict=True):
        values = "1 value" if check.values == 1 else f"{check.values} values"
        units = f" {part.units}" if part.units else ""
        lines.append(f"  {name}: {values}, rmse {part.rmse:.4g}{units}")
        lines.append(
            f"    residuals in sd: mean {check.mean:.2f}, spread {check.spread:.2f},"
            f" {check.beyond:.1%} beyond {EDGE} (5% expected)"
        )
        if check.values > 1:
            lines.append(
                f"    nearest neighbours: correlation {check.neighbours:.2f}, expected"
                f" {check.expected_neighbours:.2f} +- {check.neighbours_sd:.2f}"
            )
        lines.append(f"    {'; '.join(check.verdicts)}")
    lines.append("  farthest from what the others say:")
    lines += [
        f"    {w.source}, {w.place}: {w.value:.4g}, expected {w.mean:.4g} +- {w.sd:.2g}"
        f" ({w.residual:+.1f} sd)"
        for w in worst
    ]
    return "\n".join(lines)
