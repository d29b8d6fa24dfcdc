"""The lengths that a set of supports can speak about: extent, spacing, centre."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from mrgp.supports.spaces import Spaces, grouped
from mrgp.supports.support import Columns, Support

Lengths = Float[np.ndarray, " d"]


@dataclasses.dataclass(frozen=True)
class Geometry:
    """Names of the inputs, and along each the domain's extent and the spacing of supports.

    `spaces` are the groups of inputs that are directions of one space, `covariates` those inputs
    that describe places rather than being directions, and `categories` those of them with codes.
    Inputs that are `hidden` are seen by kernels that name them, and by no other.

    >>> from mrgp import points
    >>> geometry = Geometry.of([points([[0.0], [1.0], [2.0], [4.0]])])
    >>> geometry.extent, geometry.centre, geometry.typical.round(3)
    (array([4.]), array([2.]), array([2.309]))
    """

    names: tuple[str, ...]
    extent: Lengths
    spacing: Lengths
    centre: Lengths
    spaces: Spaces = ()
    covariates: Columns = ()
    categories: Columns = ()
    hidden: Columns = ()

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
        centres, first = np.concatenate([s.centres for s in supports]), supports[0]
        added = {name for field in first.covariates or () for name in field.names}
        names = first.input_names
        covariates = tuple(d for d, name in enumerate(names) if name in added)
        # What describes a place does not thin out the places: it is measured apart.
        spacing = np.zeros(len(names))
        places = [d for d in range(len(names)) if d not in covariates]
        for columns in (places, *([d] for d in covariates)):
            groups = grouped(range(len(columns)), _within(first.spaces, columns))
            spacing[columns] = _spacing(centres[:, columns], extent[columns], groups)
        middle, categories = 0.5 * (lower + upper), tuple(first.categories)
        return cls(names, extent, spacing, middle, first.spaces, covariates, categories)

    @property
    def open(self) -> Columns:
        """The inputs that kernels see which name none."""
        return tuple(d for d in range(len(self.names)) if d not in self.hidden)

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


def _within(spaces: Spaces, columns: Sequence[int]) -> Spaces:
    """Return the places in `columns` of the inputs of each space."""
    kept = [[columns.index(d) for d in space if d in columns] for space in spaces]
    return tuple(map(tuple, filter(None, kept)))


def _spacing(centres: Float[np.ndarray, "n d"], extent: Lengths, groups: Spaces) -> Lengths:
    """Return the side of the cell that one region has to itself, input by input.

    The distinct centres are taken to fill a grid, of as many columns along each group of inputs as
    there are distinct places in it at most: sites that are read every hour have the hour for their
    step, and share the map. All sources count together, so that a few regions close to one another
    do not set the scale.
    """
    scaled = np.round((centres - centres.min(0)) / extent, 9)
    columns = [scaled[:, group] for group in groups]
    cells = np.ones(len(extent))
    for group, count in zip(groups, _even(columns, _distinct(scaled)), strict=True):
        cells[list(group)] = _even([scaled[:, [d]] for d in group], count)
    span = np.ptp(centres, axis=0)
    return np.where(span > 0, span / np.maximum(cells - 1.0, 1.0), extent)


def _even(parts: Sequence[Float[np.ndarray, "n _"]], count: float) -> Float[np.ndarray, " p"]:
    """Share a number of cells among parts, as even as the distinct rows of each part allow.

    A regular grid finds its own columns, n points scattered over d inputs n^(1/d) of each.
    """
    most = np.array([_distinct(part) for part in parts])
    sizes = np.array([part.shape[1] for part in parts])
    cells, shares = np.ones(len(parts)), sizes.sum()
    for p in np.argsort(most ** (1.0 / sizes), kind="stable"):
        cells[p] = min(most[p], max(1.0, count ** (sizes[p] / shares)))
        count, shares = float(count / cells[p]), shares - sizes[p]
    return cells


def _distinct(rows: Float[np.ndarray, "n _"]) -> float:
    return float(len(np.unique(rows, axis=0)))
