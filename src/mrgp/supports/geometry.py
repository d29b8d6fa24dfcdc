"""The lengths that a set of supports can speak about: extent, spacing, centre."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from mrgp.supports.support import Support

Lengths = Float[np.ndarray, " d"]


@dataclasses.dataclass(frozen=True)
class Geometry:
    """Names of the inputs, and along each the domain's extent and the spacing of supports.

    >>> from mrgp import points
    >>> geometry = Geometry.of([points([[0.0], [1.0], [2.0], [4.0]])])
    >>> geometry.extent, geometry.centre, geometry.typical.round(3)
    (array([4.]), array([2.]), array([2.309]))
    """

    names: tuple[str, ...]
    extent: Lengths
    spacing: Lengths
    centre: Lengths

    @classmethod
    def unit(cls, dimension: int) -> "Geometry":
        """Return the geometry of unnamed inputs of unit length about the origin."""
        ones = np.ones(dimension)
        names = tuple(f"x{d + 1}" for d in range(dimension))
        return cls(names, ones, ones, np.zeros(dimension))

    @classmethod
    def of(cls, supports: Sequence[Support]) -> "Geometry":
        """Measure a set of supports that share their inputs."""
        lower, upper = bounds_of(supports)
        extent = np.where(upper > lower, upper - lower, 1.0)
        spacing = _spacing(np.concatenate([_centres(s) for s in supports]), extent)
        return cls(supports[0].input_names, extent, spacing, 0.5 * (lower + upper))

    @property
    def typical(self) -> Lengths:
        """The middle of the plausible lengthscales, on a log scale."""
        return np.sqrt(self.spacing * self.extent)

    @property
    def log_spread(self) -> Lengths:
        """The sd of log lengthscale that leaves 1 % below the spacing and 1 % above the domain."""
        return np.maximum(np.log(self.extent / self.spacing) / (2 * 2.326), 0.5)

    def index(self, name: str | int) -> int:
        """Return the column of an input given by name or by number."""
        if isinstance(name, str):
            if name not in self.names:
                raise ValueError(f"No input is named {name!r}; the inputs are {self.names}.")
            return self.names.index(name)
        if not -len(self.names) <= name < len(self.names):
            raise ValueError(f"Input {name} does not exist; there are {len(self.names)} inputs.")
        return name % len(self.names)


def bounds_of(supports: Sequence[Support]) -> tuple[Lengths, Lengths]:
    """Return the least and the greatest coordinates of a set of supports.

    >>> import mrgp
    >>> bounds_of([mrgp.points([[0.0], [1.0]]), mrgp.intervals([0.5], [3.0])])
    (array([0.]), array([3.]))
    """
    lower = np.min([np.min(s.bounds[0], 0) for s in supports], 0)
    return lower, np.max([np.max(s.bounds[1], 0) for s in supports], 0)


def _centres(support: Support) -> Float[np.ndarray, "n d"]:
    """Return the weighted centre of each region, or the middle of its bounds for contrasts."""
    total = np.asarray(support.total)[:, None]
    lower, upper = support.bounds
    weighted = np.asarray(support.moment) / np.where(total != 0, total, 1.0)
    return np.where(total != 0, weighted, 0.5 * (np.asarray(lower) + np.asarray(upper)))


def _spacing(centres: Float[np.ndarray, "n d"], extent: Lengths) -> Lengths:
    """Return the side of the cell that one region has to itself, input by input.

    The distinct centres are taken to fill a grid of `cells[d]` columns, as even as the number of
    distinct coordinates allows: a regular grid finds its own step, n scattered points n^(1/d). All
    sources count together, so that a few regions close to one another do not set the scale.
    """
    scaled = np.round((centres - centres.min(0)) / extent, 9)
    distinct = np.array([len(np.unique(column)) for column in scaled.T])
    left = float(len(np.unique(scaled, axis=0)))
    cells = np.ones(len(extent))
    for done, d in enumerate(np.argsort(distinct, kind="stable")):
        cells[d] = min(distinct[d], max(1.0, left ** (1.0 / (len(cells) - done))))
        left /= cells[d]
    span = np.ptp(centres, axis=0)
    return np.where(span > 0, span / np.maximum(cells - 1.0, 1.0), extent)
