"""Baselines of the paper: the product likelihood, and regions as their centres."""

import dataclasses
from typing import Any

from mrgp.data import Dataset
from mrgp.models.mrgp import MRGP
from mrgp.models.single import SingleGP
from mrgp.supports import DEFAULT_RULE


@dataclasses.dataclass(frozen=True)
class VBAgg:
    """The baseline VBAgg-normal: MR-GP under the product likelihood, all composite weights one.

    >>> VBAgg().method
    'auto'
    """

    kernel: Any = None
    inducing: Any = None
    method: str = "auto"
    mean: str = "constant"
    priors: bool = True
    quadrature: Any = DEFAULT_RULE

    def __post_init__(self) -> None:
        MRGP(**vars(self))

    def view(self, data: Dataset) -> Dataset:
        """Return the data as they are."""
        return data

    def build(self, data: Dataset, key: Any = 0) -> SingleGP:
        """Make the MR-GP of the same settings."""
        return MRGP(**vars(self)).build(data, key)


@dataclasses.dataclass(frozen=True)
class CenterPoint:
    """The baseline CENTER-POINT: any model on data whose regions are replaced by their centres.

    Predictions may still be asked for on any support.

    >>> CenterPoint(MRGP()).model.bias
    'none'
    """

    model: Any = dataclasses.field(default_factory=MRGP)

    def __post_init__(self) -> None:
        if isinstance(self.model, type) or not hasattr(self.model, "build"):
            raise TypeError(f"CenterPoint takes a model such as mrgp.MRGP(); got {self.model!r}.")

    def view(self, data: Dataset) -> Dataset:
        """Return the data with collapsed supports."""
        return self.model.view(data.collapse())

    def build(self, data: Dataset, key: Any = 0) -> Any:
        """Make the inner model for the view of the data."""
        return self.model.build(data, key)
