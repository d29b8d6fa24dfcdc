"""A problem: a recipe, the data as it sees them, and what is measured of them once."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mrgp._types import float64
from mrgp.data import (
    Dataset,
    Frame,
    Records,
    Scaling,
    as_seed,
    excerpt,
    require_in_memory,
)
from mrgp.inference.feeds import Feeds, feeds_of
from mrgp.inference.objectives import Objective
from mrgp.models import Model, Process, Recipe, Weights


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """What a fit starts from; `seen` are the data as the recipe sees them, `records` centred.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [2.0]]), [3.0, 5.0], name="sensors")
    >>> problem = Problem.of(mrgp.MRGP(), mrgp.Dataset([sensors]), weights={"sensors": 0.5})
    >>> problem.records[0].y, problem.weights
    (array([-1.,  1.]), {('sensors', 'value'): 0.5})
    """

    recipe: Recipe
    data: Dataset
    seen: Dataset
    frame: Frame
    records: Records
    key: int

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        data: Dataset,
        weights: Mapping[Any, float] | None = None,
        key: Any = 0,
        stored: bool = False,
    ) -> "Problem":
        """Measure data as a recipe sees them, with composite weights by source or process.

        Rows that are `stored` are for those who read them; others refuse them.
        """
        check_recipe(recipe, weights)
        if not stored:
            require_in_memory(data)
        seen = recipe.view(data)
        if recipe.fitted == "parts":
            # A recipe may leave sources out.
            data = Dataset([data[process] for process in seen.processes])
        frame = recipe.frame(seen)
        records = frame.scaling.records(seen, weights)
        return cls(recipe, data, seen, frame, records, as_seed(key))

    @property
    def scaling(self) -> Scaling:
        """The scaling of the data."""
        return self.frame.scaling

    @property
    def weights(self) -> dict[Process, float]:
        """The composite weight of each process."""
        pairs = zip(self.seen.processes, self.records, strict=True)
        return {process: float(record.weight) for process, record in pairs}

    @property
    def count(self) -> int:
        """The number of observed values."""
        return sum(len(record) for record in self.records)

    @property
    def feeds(self) -> Feeds:
        """The rows of each process that stay where they are stored, as a stream."""
        return feeds_of(self.seen, self.scaling, self.weights, self.key)

    @property
    def log_unit(self) -> float:
        """The mean log spread of the values."""
        counts = [len(record) for record in self.records]
        spreads = [self.scaling.scale[self.scaling.index(o.task)] for o in self.seen]
        return float(np.average(np.log(spreads), weights=counts))

    def build(self) -> Model:
        """Make the model, with starting values."""
        return self.recipe.build(self.seen, self.key, self.frame)

    def objective(self, model: Model | None = None) -> Objective:
        """Return what a fit maximises, from the parameters of a model."""
        return Objective.of(self.build() if model is None else model, self.records)

    def weighted(self, weights: Mapping[Any, float] | None) -> "Problem":
        """Return the problem with other composite weights."""
        return dataclasses.replace(self, records=self.scaling.records(self.seen, weights))

    def sample(self, rows: int) -> "Problem":
        """Return the problem on about so many rows, shared out evenly, in the same frame."""
        if self.count <= rows:
            return self
        return self.on(self.seen.batch(max(1, rows // len(self.seen)), self.key))

    def excerpt(self, places: int, rows: int) -> "Problem":
        """Return the problem on a stretch of time at some places, in the same frame."""
        return self.on(excerpt(self.seen.dropna(), places, rows, self.key))

    def on(self, seen: Dataset) -> "Problem":
        """Return the problem on a part of the data."""
        records = self.scaling.records(seen, self.weights)
        return dataclasses.replace(self, seen=seen, records=records)


@float64
def objective(
    model: Recipe, data: Dataset, weights: Mapping[Any, float] | None = None, key: Any = 0
) -> Objective:
    """Return the function that `fit` maximises, with its starting point.

    >>> import jax, mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> f = mrgp.objective(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> with jax.enable_x64(True):
    ...     slope = jax.jit(jax.grad(f))(f.start)
    """
    return Problem.of(model, data, weights, key).objective()


def check_recipe(recipe: Any, weights: Weights = None) -> None:
    """Refuse what is not a model, and weights that a model cannot have.

    >>> import mrgp
    >>> check_recipe(mrgp.VBAgg(), weights={"sensors": 0.5})
    Traceback (most recent call last):
    ValueError: VBAgg has all weights one by definition; use MRGP to weight sources.
    """
    if isinstance(recipe, type) or not isinstance(recipe, Recipe):
        hint = f" Write {recipe.__name__}()." if isinstance(recipe, type) else ""
        raise TypeError(
            f"The first argument must be a model such as mrgp.MRGP(); got {recipe!r}.{hint}"
        )
    reason = recipe.refuses(weights)
    if reason is not None:
        raise ValueError(reason)


def recipe_name(recipe: Recipe) -> str:
    """Return the name of a recipe, with those that it wraps inside.

    >>> from mrgp import CenterPoint, MRGP
    >>> recipe_name(CenterPoint(MRGP()))
    'CenterPoint(MRGP)'
    """
    name = type(recipe).__name__
    return name if recipe.inner is None else f"{name}({recipe_name(recipe.inner)})"
