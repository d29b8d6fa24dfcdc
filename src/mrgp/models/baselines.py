"""Baselines of the paper: the product likelihood, and regions as their centres."""

import dataclasses
from typing import Any

from mrgp.data import Dataset, Frame
from mrgp.models.contract import Fitted, Model, PlainRecipe, Recipe, Sketch, Weights
from mrgp.models.mrgp import MRGP
from mrgp.supports import DEFAULT_RULE, Support


@dataclasses.dataclass(frozen=True, repr=False)
class VBAgg(PlainRecipe):
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

    def refuses(self, weights: Weights) -> str | None:
        """Take no weights: all are one."""
        if weights is None:
            return None
        return "VBAgg has all weights one by definition; use MRGP to weight sources."

    def sketch(self, data: Dataset) -> Sketch:
        """Return one field."""
        return MRGP(**vars(self)).sketch(data)

    def frame(self, data: Dataset) -> Frame:
        """Measure data as the MR-GP does."""
        return MRGP(**vars(self)).frame(data)

    def build(self, data: Dataset, key: Any = 0, frame: Frame | None = None) -> Model:
        """Make the MR-GP of the same settings."""
        return MRGP(**vars(self)).build(data, key, frame)


@dataclasses.dataclass(frozen=True)
class CenterPoint:
    """The baseline CENTER-POINT: any model on data whose regions are replaced by their centres.

    It predicts as it sees: a region, of the data or of a prediction, is its centre.

    >>> CenterPoint(MRGP()).model.bias
    'none'
    """

    model: Any = dataclasses.field(default_factory=MRGP)

    def __post_init__(self) -> None:
        if isinstance(self.model, type) or not isinstance(self.model, Recipe):
            raise TypeError(f"CenterPoint takes a model such as mrgp.MRGP(); got {self.model!r}.")

    @property
    def inner(self) -> Recipe:
        """The model that sees the centres."""
        return self.model

    @property
    def fitted(self) -> Fitted:
        """The inner model is fitted as it always is."""
        return self.model.fitted

    def refuses(self, weights: Weights) -> str | None:
        """Take the weights that the inner model takes."""
        return self.model.refuses(weights)

    def view(self, data: Dataset) -> Dataset:
        """Return the data with collapsed supports."""
        return self.model.view(data.collapse())

    def view_of(self, support: Support) -> Support:
        """Return the centres of the regions."""
        return self.model.view_of(support.collapse())

    def sketch(self, data: Dataset) -> Sketch | None:
        """Return what the inner model is made of."""
        return self.model.sketch(data)

    def frame(self, data: Dataset) -> Frame:
        """Measure data as the inner model does."""
        return self.model.frame(data)

    def build(self, data: Dataset, key: Any = 0, frame: Frame | None = None) -> Model:
        """Make the inner model for the view of the data."""
        return self.model.build(data, key, frame)
