"""A support: where a value lives, as a linear functional of a field (theory 1.1)."""

import abc
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from mrgp._types import AnyArray, Inputs, NodeInputs, NodeWeights, Vector
from mrgp.supports.axes import Axis, Side, time_column
from mrgp.supports.quadrature import DEFAULT_RULE, Rule
from mrgp.supports.spaces import Spaces, known_spaces

Kind = Literal["mean", "sum"]
Interpolation = Literal["linear", "nearest"]
Columns = tuple[int, ...]
PerInput = Float[AnyArray, " d"]
Bounds = tuple[Inputs, Inputs]
S = TypeVar("S", bound="Support")

Partition = tuple[Columns, ...]
"""Disjoint groups of input columns that together are all of them."""


class Atoms(NamedTuple):
    """A support as weighted boxes: (L f)_n = sum_s weights_ns * mean of f over box ns.

    Boxes may have sides of zero width; `flat` marks the inputs along which all have.

    >>> from mrgp import intervals
    >>> atoms = intervals([0.0], [2.0], kind="sum").atoms()
    >>> atoms.lower.ravel(), atoms.upper.ravel(), atoms.weights.ravel()
    (array([0.]), array([2.]), array([2.]))
    """

    lower: NodeInputs
    upper: NodeInputs
    weights: NodeWeights
    flat: tuple[bool, ...]


class Support(eqx.Module):
    """Regions of input space, one for each value.

    All arrays have a row for each region, and the first has the inputs last. `axes` says what the
    numbers of each input mean, where that is known (dates, degrees). `covariates` is what
    `with_covariates` added its columns from. `space` has the groups of inputs that were said to be
    directions of one space; None leaves that to axes and well-known names.
    """

    inputs: tuple[str, ...] | None = eqx.field(static=True, default=None, kw_only=True)
    kind: Kind = eqx.field(static=True, default="mean", kw_only=True)
    axes: tuple[Axis | None, ...] | None = eqx.field(static=True, default=None, kw_only=True)
    covariates: tuple[Any, ...] | None = eqx.field(static=True, default=None, kw_only=True)
    space: Spaces | None = eqx.field(static=True, default=None, kw_only=True)

    @property
    @abc.abstractmethod
    def total(self) -> Vector:
        """L 1: one for means, the measure for sums."""

    @property
    @abc.abstractmethod
    def moment(self) -> Inputs:
        """L x: the functional applied to each coordinate."""

    @property
    @abc.abstractmethod
    def bounds(self) -> Bounds:
        """Lower and upper corners of each region."""

    @abc.abstractmethod
    def atoms(self, along: Columns = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        """Write every region as weighted boxes, with a rule's nodes along some inputs."""

    def __len__(self) -> int:
        return jax.tree.leaves(self)[0].shape[0]

    @property
    def dimension(self) -> int:
        """Number of inputs."""
        return jax.tree.leaves(self)[0].shape[-1]

    def __getitem__(self: S, index: Any) -> S:
        """Select regions by slice, mask, integer array, or integer, which leaves one region."""
        rows = _as_rows(index, len(self))
        chosen = jax.tree.map(lambda array: array[rows], self)
        # Rows are traced only where arrays are, and copies whose arrays are remember nothing.
        kept = {
            name: known[rows if isinstance(rows, slice) else np.asarray(rows)]
            for name, known in self._remembered()
        }
        return dataclasses.replace(chosen, **kept) if kept else chosen

    def _remembered(self) -> Iterator[tuple[str, Any]]:
        """List what is known of the regions beside their numbers."""
        for name in ("origin", "outlines"):
            if getattr(self, name, None) is not None:
                yield name, getattr(self, name)

    def affine(self: S, scale: PerInput, offset: PerInput) -> S:
        """Write x as scale * x + offset, with positive scales; the functional stays the same.

        What `axes` said of the numbers no longer holds: whoever moves a support sets them anew.
        """
        moved: dict[str, Any] = {name: None for name, _ in self._remembered()}
        for name in ("x", "lower", "upper"):
            if hasattr(self, name):
                moved[name] = _affine(getattr(self, name), scale, offset)
        return dataclasses.replace(self, axes=None, **moved)

    def quadrature(self, rule: Rule = DEFAULT_RULE) -> "Nodes":
        """Replace each region by the nodes of a rule (`Midpoint`, `GaussLegendre`, `Sobol`)."""
        atoms = self.atoms(tuple(range(self.dimension)), rule)
        wide = tuple(d for d, flat in enumerate(self.pointlike) if not flat or d in self.solid)
        return Nodes(atoms.lower, atoms.weights, wide=wide, **self.labels)

    def collapse(self) -> "Points":
        """Return the center-point view: one node at the weighted centre, with all the weight."""
        total = self.total
        if np.any(np.asarray(total) == 0):
            raise ValueError(
                "collapse: a region whose weights sum to zero has no centre; drop contrasts first."
            )
        return Points(self.moment / total[:, None], total, **self.labels)

    def shift(self: S, origin: Any) -> S:
        """Return the arithmetic of the support about another origin, without axes and sources.

        >>> from mrgp import points
        >>> points([[5.0]]).shift([3.0])
        Points(1 mean: x1 2 to 2)
        """
        moved = self.affine(np.ones(self.dimension), -np.asarray(origin))
        return dataclasses.replace(moved, covariates=None)

    @property
    def labels(self) -> dict[str, Any]:
        """What a support made from this one keeps: names, kind, axes, covariates, spaces."""
        kept = ("inputs", "kind", "axes", "covariates", "space")
        return {name: getattr(self, name) for name in kept}

    @property
    def blocks(self) -> Partition:
        """The finest groups of inputs over which the functional is a product."""
        return (tuple(range(self.dimension)),)

    def factors(self, partition: Partition) -> tuple["Support", ...]:
        """Write the functional as a product of functionals of groups of inputs."""
        if len(partition) != 1:
            raise ValueError(f"{type(self).__name__} is no product over the groups {partition}.")
        return (self,)

    @property
    def members(self) -> "Members":
        """The supports that this one is a product of, and the inputs of each; itself if of none."""
        return ((self, tuple(range(self.dimension))),)

    @property
    def solid(self) -> Columns:
        """The inputs whose nodes stand for regions of positive measure."""
        return ()

    @property
    def pointlike(self) -> tuple[bool, ...]:
        """Whether the boxes of all regions are points along each input, as `flat` of the atoms."""
        return (True,) * self.dimension

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs: the user's, or x1, x2, ..."""
        return self.inputs or tuple(f"x{d + 1}" for d in range(self.dimension))

    @property
    def input_axes(self) -> tuple[Axis | None, ...]:
        """What the numbers of each input mean, or None where that is not known."""
        return self.axes or (None,) * self.dimension

    @property
    def spaces(self) -> Spaces:
        """The inputs that are directions of one space: as given, or by axes and names.

        >>> from mrgp import points
        >>> points([[0.0, 51.5, 3.0]], inputs=("lon", "lat", "time")).spaces
        ((0, 1),)
        """
        if self.space is not None:
            return self.space
        return known_spaces(self.input_names, self.input_axes)

    @property
    def clock(self) -> int | None:
        """The input that is time, if one is; covariates, which come last, are none."""
        count = self.dimension - sum(len(field.names) for field in self.covariates or ())
        return time_column(self.input_names[:count], self.input_axes[:count])

    @property
    def categories(self) -> dict[int, tuple[str, ...]]:
        """The categories of each input that has codes of such."""
        fields = self.covariates or ()
        known = {name: f.levels for f in fields for name in f.names if f.levels is not None}
        return {d: known[name] for d, name in enumerate(self.input_names) if name in known}

    @property
    def sides(self) -> list[Side]:
        """The inputs one by one, as wide as the regions."""
        lower, upper = (np.asarray(bound).T for bound in self.bounds)
        return list(map(Side, self.input_names, lower, upper, self.input_axes))

    @property
    def centres(self) -> Float[np.ndarray, "n d"]:
        """The weighted centre of each region; of contrasts, the middle of its bounds."""
        total = np.asarray(self.total)[:, None]
        middle = np.stack([side.middle for side in self.sides], 1)
        weighted = np.asarray(self.moment) / np.where(total != 0, total, 1.0)
        return np.where(total != 0, weighted, middle)

    def with_covariates(
        self, source: Any, names: Any = None, *, inputs: Any = None, method: str = "linear"
    ) -> "Support":
        """Add inputs that are known functions of the others, sampled at the nodes, or of a table.

        `source` is an xarray grid over some of the inputs (`method` is "linear" or "nearest"; text
        makes categories, of the nearest cell), or a function of the node coordinates [k, d] that
        returns [k] or [k, c]; `names` names what a function returns and `inputs` the columns it is
        given (default: all). Regions become nodes along the inputs that the source depends on.
        Predictions from a fit on such supports find the covariates themselves. A function sees the
        support's own numbers: kilometres and hours where places and dates were read by
        `from_frame`; a grid is looked up in degrees and dates.

        A data frame has a row for each region: text and categorical columns are categories, and a
        prediction must bring its own.

        >>> import mrgp
        >>> mrgp.points([[0.0], [2.0]]).with_covariates(lambda x: x[:, 0] ** 2, "height")
        Points(2 means: x1 0 to 2; height 0 to 4)
        """
        from mrgp.supports.covariates import Field
        from mrgp.supports.tables import with_rows

        if hasattr(source, "items") and not hasattr(source, "dims"):
            return with_rows(self, source)
        return Field.of(source, names, inputs, method).extend(self)

    def weighted(self, source: Any, *, inputs: Any = None, method: str = "linear") -> "Support":
        """Weight the places inside each region by a known density, such as population.

        A mean becomes the weighted mean and a sum the weighted total; `source` is an xarray grid
        or a function, as in `with_covariates`.

        >>> import mrgp
        >>> cell = mrgp.boxes([[0.0, 0.0]], [[1.0, 1.0]])
        >>> cell.weighted(lambda x: x[:, 0]).collapse().x.round(2)
        array([[0.66, 0.5 ]])
        """
        from mrgp.supports.covariates import Field

        return Field.of(source, "weight", inputs, method).weight(self)

    @property
    def nodes_per_region(self) -> int:
        """Number of boxes that make up one region."""
        return self.atoms().weights.shape[1]

    def __repr__(self) -> str:
        if len(self) == 0:
            return f"{type(self).__name__}(no regions, {self.dimension} inputs)"
        each = f" of {self.nodes_per_region} nodes" if self.nodes_per_region > 1 else ""
        count = f"{len(self)} {self.kind}{'' if len(self) == 1 else 's'}{each}"
        known = self.categories
        sides = (
            f"{side.name} {', '.join(known[d])}" if d in known else str(side)
            for d, side in enumerate(self.sides)
        )
        return f"{type(self).__name__}({count}: {'; '.join(sides)})"


Members = tuple[tuple[Support, Columns], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """The regions that nodes stand for, for overlaps; arithmetic never sees them.

    They are regions of the first inputs of the nodes; covariates come after those. Origins are
    equal where they are the same object.
    """

    regions: Support

    def __getitem__(self, index: Any) -> "Origin":
        return Origin(self.regions[index])


class Rectangular(Support):
    """Points and boxes: products over all their inputs."""

    weights: eqx.AbstractVar[Vector]

    @property
    def total(self) -> Vector:
        return self.weights

    @property
    def moment(self) -> Inputs:
        lower, upper = self.bounds
        return self.weights[:, None] * 0.5 * (lower + upper)

    @property
    def blocks(self) -> Partition:
        return tuple((d,) for d in range(self.dimension))

    def factors(self, partition: Partition) -> tuple["Rectangular", ...]:
        # The first factor carries the weights.
        weights, ones = self.weights, self.weights.__array_namespace__().ones_like(self.weights)
        made = []
        for columns in partition:
            lower, upper = (bound[:, list(columns)] for bound in self.bounds)
            flat = tuple(self.pointlike[d] for d in columns)
            made.append(like([self], (lower, upper), weights, flat, kind=self.kind))
            weights = ones
        return tuple(made)

    def atoms(self, along: Columns = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        flat, chosen = np.array(self.pointlike), np.isin(np.arange(self.dimension), along)
        lower, upper = (bound[:, None, :] for bound in self.bounds)
        weights = self.weights[:, None]
        if np.all(flat | ~chosen):
            return Atoms(lower, upper, weights, self.pointlike)
        unit, share = rule.on_unit_cube(tuple((flat | ~chosen).tolist()))
        x = lower + (upper - lower) * unit[None, :, :]
        where = x.__array_namespace__().where
        lower, upper = (where(chosen[None, None, :], x, side) for side in (lower, upper))
        return Atoms(lower, upper, weights * share[None, :], tuple((flat | chosen).tolist()))


class Points(Rectangular):
    """Single locations, each with a weight (one for means).

    >>> from mrgp import points
    >>> points([[2.0]], kind="sum", weights=[3.0]).moment
    array([[6.]])
    """

    x: Inputs
    weights: Vector

    @property
    def bounds(self) -> Bounds:
        return self.x, self.x

    def collapse(self) -> "Points":
        """Return the points themselves."""
        return self


class Boxes(Rectangular):
    """Axis-aligned boxes; a side may have zero width (a sensor, an instant).

    >>> from mrgp import boxes
    >>> boxes([[0.0, 5.0]], [[2.0, 5.0]], kind="sum").total
    array([2.])
    """

    lower: Inputs
    upper: Inputs
    weights: Vector
    flat: tuple[bool, ...] = eqx.field(static=True)

    @property
    def bounds(self) -> Bounds:
        return self.lower, self.upper

    @property
    def pointlike(self) -> tuple[bool, ...]:
        return self.flat


def like(
    parts: Iterable[Support], bounds: Bounds, weights: Vector, flat: tuple[bool, ...], **labels: Any
) -> Rectangular:
    """Make points from points, and boxes where there are boxes among them."""
    if all(isinstance(part, Points) for part in parts):
        return Points(bounds[0], weights, **labels)
    return Boxes(*bounds, weights, flat, **labels)


class Nodes(Support):
    """Weighted sums over given nodes; nodes of zero weight are padding.

    `wide` are the inputs along which the nodes were laid out inside regions of positive measure,
    and `origin` has those regions; a copy with other coordinates (`affine`) has none.

    >>> from mrgp import nodes
    >>> nodes([[[0.0], [4.0]]], [[3.0, 1.0]]).collapse().x
    array([[1.]])
    """

    x: NodeInputs
    weights: NodeWeights
    wide: Columns = eqx.field(static=True, default=(), kw_only=True)
    origin: Origin | None = eqx.field(static=True, default=None, kw_only=True)

    @property
    def total(self) -> Vector:
        return self.weights.sum(1)

    @property
    def moment(self) -> Inputs:
        return (self.weights[:, :, None] * self.x).sum(1)

    @property
    def bounds(self) -> Bounds:
        used = (np.asarray(self.weights) != 0)[:, :, None]
        x = np.asarray(self.x)
        return np.where(used, x, np.inf).min(1), np.where(used, x, -np.inf).max(1)

    @property
    def solid(self) -> Columns:
        return self.wide

    def atoms(self, along: Columns = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        return Atoms(self.x, self.x, self.weights, (True,) * self.dimension)

    def quadrature(self, rule: Rule = DEFAULT_RULE) -> "Nodes":
        """Return the nodes themselves."""
        return self


def _affine(
    x: Float[AnyArray, "... d"], scale: PerInput, offset: PerInput
) -> Float[AnyArray, "... d"]:
    shape = (1,) * (x.ndim - 1) + (-1,)
    return scale.reshape(shape) * x + offset.reshape(shape)


def _as_rows(index: Any, n: int) -> Any:
    """Keep one region a region: an integer selects a support of length one."""
    if isinstance(index, int | np.integer):
        if not -n <= index < n:
            raise IndexError(f"Region {index} does not exist; there are {n}.")
        return slice(index % n, index % n + 1)
    return np.asarray(index, dtype=int if not index else None) if isinstance(index, list) else index
