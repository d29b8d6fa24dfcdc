"""A support: where a value lives, as a linear functional of a field (theory 1.1)."""

import abc
import dataclasses
from typing import Any, Literal, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from mrgp._types import AnyArray, Inputs, NodeInputs, NodeWeights, Vector
from mrgp.supports.axes import Axis
from mrgp.supports.quadrature import DEFAULT_RULE, Rule

Kind = Literal["mean", "sum"]
Interpolation = Literal["linear", "nearest"]


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


Partition = tuple[tuple[int, ...], ...]
"""Disjoint groups of input columns that together are all of them."""


class Support(eqx.Module):
    """Regions of input space, one for each value.

    `axes` says what the numbers of each input mean, where that is known (dates, degrees).
    `covariates` is what `with_covariates` added its columns from.
    """

    inputs: tuple[str, ...] | None = eqx.field(static=True, default=None, kw_only=True)
    kind: Kind = eqx.field(static=True, default="mean", kw_only=True)
    axes: tuple[Axis | None, ...] | None = eqx.field(static=True, default=None, kw_only=True)
    covariates: tuple[Any, ...] | None = eqx.field(static=True, default=None, kw_only=True)

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, index: Any) -> "Support":
        """Select regions by slice, mask or integer array."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Number of inputs."""

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
    def bounds(self) -> tuple[Inputs, Inputs]:
        """Lower and upper corners of each region."""

    @abc.abstractmethod
    def affine(self, scale: Float[AnyArray, " d"], offset: Float[AnyArray, " d"]) -> "Support":
        """Write x as scale * x + offset, with positive scales; the functional stays the same.

        What `axes` said of the numbers no longer holds: whoever moves a support sets them anew.
        """

    @abc.abstractmethod
    def atoms(self, along: tuple[int, ...] = (), rule: Rule = DEFAULT_RULE) -> Atoms:
        """Write every region as weighted boxes, with a rule's nodes along some inputs."""

    @abc.abstractmethod
    def quadrature(self, rule: Rule = DEFAULT_RULE) -> "Support":
        """Replace each region by the weighted nodes of a rule."""

    @abc.abstractmethod
    def collapse(self) -> "Support":
        """Replace each region by its weighted centre, carrying the region's total weight."""

    def shift(self, origin: Any) -> "Support":
        """Return the arithmetic of the support about another origin, without axes and sources.

        >>> from mrgp import points
        >>> points([[5.0]]).shift([3.0])
        Points(1 mean: x1 2 to 2)
        """
        moved = self.affine(np.ones(self.dimension), -np.asarray(origin))
        return dataclasses.replace(moved, axes=None, covariates=None)

    @property
    def labels(self) -> dict[str, Any]:
        """What a support made from this one keeps: names, kind, axes, covariates."""
        return {
            "inputs": self.inputs,
            "kind": self.kind,
            "axes": self.axes,
            "covariates": self.covariates,
        }

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
    def solid(self) -> tuple[int, ...]:
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

    def with_covariates(
        self, source: Any, names: Any = None, *, inputs: Any = None, method: str = "linear"
    ) -> "Support":
        """Add inputs that are known functions of the others, sampled at the nodes.

        `source` is an xarray grid over some of the inputs (`method` is "linear" or "nearest"), or
        a function of the node coordinates [k, d] that returns [k] or [k, c]; `names` names what a
        function returns and `inputs` the columns it is given (default: all). Regions become nodes
        along the inputs that the source depends on. Predictions from a fit on such supports find
        the covariates themselves. A function sees the support's own numbers: kilometres and hours
        where places and dates were read by `from_frame`; a grid is looked up in degrees and dates.

        >>> import mrgp
        >>> mrgp.points([[0.0], [2.0]]).with_covariates(lambda x: x[:, 0] ** 2, "height")
        Points(2 means: x1 0 to 2; height 0 to 4)
        """
        from mrgp.supports.covariates import Field

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
        lower, upper = self.bounds
        if len(self) == 0:
            return f"{type(self).__name__}(no regions, {self.dimension} inputs)"
        axes = []
        known = self.axes or (None,) * self.dimension
        for d, (name, axis) in enumerate(zip(self.input_names, known, strict=True)):
            width = np.asarray(upper[:, d] - lower[:, d])
            ends = (float(np.min(lower[:, d])), float(np.max(upper[:, d])))
            first, last = (f"{end:.6g}" if axis is None else axis.show(end) for end in ends)
            text = f"{name} {first} to {last}"
            if np.max(width) > 0:
                unit = "" if axis is None else f" {axis.unit}"
                least, most = f"{np.min(width):.3g}", f"{np.max(width):.3g}"
                several = f"width {least}" if least == most else f"widths {least} to {most}"
                text += f", {several}{unit}"
            axes.append(text)
        nodes = self.nodes_per_region
        each = f" of {nodes} nodes" if nodes > 1 else ""
        count = f"{len(self)} {self.kind}{'' if len(self) == 1 else 's'}{each}"
        return f"{type(self).__name__}({count}: {'; '.join(axes)})"


def check_inputs(names: Any, dimension: int, where: str) -> tuple[str, ...] | None:
    """Return input names as a tuple, or say why they do not fit."""
    if names is None:
        return None
    names = (names,) if isinstance(names, str) else tuple(names)
    if len(names) != dimension or len(set(names)) != len(names):
        raise ValueError(
            f"{where}: inputs= needs one name for each of the {dimension} columns, all different;"
            f" got {names}."
        )
    return names


def check_kind(kind: str, where: str) -> Kind:
    """Return the kind of aggregate, or say which there are."""
    if kind not in ("mean", "sum"):
        raise ValueError(f'{where}: kind= is "mean" or "sum"; got {kind!r}.')
    return kind


def check_multiplier(weights: Any, n: int, kind: Kind, where: str) -> np.ndarray:
    """Return one factor for each region of a sum, or say why those given do not fit."""
    if weights is None:
        return np.ones(n)
    if kind == "mean":
        raise ValueError(
            f'{where}: one weight a region cancels in a mean; use kind="sum" for totals, or'
            " nodes(x, weights) for a weighted mean."
        )
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all():
        raise ValueError(
            f"{where}: weights must be {n} finite numbers, one a region; got shape {weights.shape}."
        )
    return weights


def check_coordinates(values: Any, ndim: int, name: str, where: str) -> np.ndarray:
    """Return finite float64 coordinates of the wanted rank, or say what came instead."""
    shapes = {1: "[n]", 2: "[n, d]", 3: "[n, s, d]"}
    if np.ma.is_masked(values):
        raise ValueError(
            f"{where}: {name} has masked coordinates. Drop those rows or fill them in."
        )
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{where}: {name} has rows of different length.") from None
    if array.dtype.kind not in "fiub":
        dates = (
            " Convert dates to hours or days since a start." if array.dtype.kind in "MmO" else ""
        )
        raise TypeError(f"{where}: {name} must be numbers; got {array.dtype}.{dates}")
    array = array.astype(np.float64)
    if array.ndim != ndim:
        hint = " For one input give x[:, None]." if (ndim, array.ndim) == (2, 1) else ""
        raise ValueError(
            f"{where}: {name} must have shape {shapes[ndim]}; got {array.shape}.{hint}"
        )
    if ndim > 1 and array.shape[-1] == 0:
        raise ValueError(f"{where}: {name} has no input columns; got shape {array.shape}.")
    return array


def stretched(
    x: Float[AnyArray, "... d"], scale: Float[AnyArray, " d"], offset: Float[AnyArray, " d"]
) -> Float[AnyArray, "... d"]:
    """Return scale * x + offset, with one of each for every input."""
    shape = (1,) * (x.ndim - 1) + (-1,)
    return scale.reshape(shape) * x + offset.reshape(shape)


def require_finite(array: np.ndarray, name: str, where: str) -> None:
    """Refuse NaN and infinite coordinates, saying how many and where the first is."""
    bad = np.atleast_1d(~np.isfinite(array).all(axis=tuple(range(1, array.ndim))))
    if bad.any():
        raise ValueError(
            f"{where}: {name} has NaN or infinite coordinates in {bad.sum()} of {len(bad)} rows,"
            f" first in row {np.argmax(bad)}. Drop those rows or fill them in."
        )
