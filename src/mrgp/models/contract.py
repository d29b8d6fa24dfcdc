"""What recipes and models can do: all that inference, weighting and prediction know of them."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float

from mrgp.data import Dataset, Frame, Process, Records, Scaling
from mrgp.gp import Conditioned, Readings, Smoother, Solver
from mrgp.kernels import Kernel
from mrgp.models.answers import Components, Question
from mrgp.models.telling import in_words
from mrgp.parameters import Parameter
from mrgp.supports import Support

Weights = Mapping[Any, float] | str | None
"""Composite weights by (source, task) or by source, a word for how to find them, or none."""

State = Any
"""The posterior of a model: only its own model looks inside."""

Fitted = Literal["whole", "blocks", "parts"]
"""All parameters at once; a posterior block by block under them; or one part after another."""


@runtime_checkable
class Recipe(Protocol):
    """A frozen description of a model: plain values, no data.

    >>> from mrgp import MRGP, RBF
    >>> isinstance(MRGP(), Recipe), isinstance(RBF(), Recipe)
    (True, False)
    """

    @property
    def inner(self) -> "Recipe | None":
        """The recipe that this one wraps, if any."""
        ...

    @property
    def fitted(self) -> Fitted:
        """How its model is fitted."""
        ...

    def refuses(self, weights: Weights) -> str | None:
        """Say why the model cannot have these composite weights, or return None."""
        ...

    def view(self, data: Dataset) -> Dataset:
        """Return the data as the model sees it."""
        ...

    def view_of(self, support: Support) -> Support:
        """Return the regions of a prediction as the model sees them."""
        ...

    def sketch(self, data: Dataset) -> "Sketch | None":
        """Return what the model is made of for data as it sees them, if that can be drawn."""
        ...

    def frame(self, data: Dataset) -> Frame:
        """Measure data as the model sees them: where values and inputs are centred."""
        ...

    def build(self, data: Dataset, key: Any = 0, frame: Frame | None = None) -> "Model":
        """Make the model for a dataset, with starting values in its frame."""
        ...


class Sketch(NamedTuple):
    """What a model is made of, for a picture: one field, a network of functions, or a tree.

    `bias` is that of sources other than the `target` of one field; `latents`, `constant` and
    `positive` say how a network mixes functions; `plan` has the branches of a tree, which see
    `beside` and are mixed by a rule.

    >>> Sketch("network", latents=2, constant=True).positive
    False
    """

    form: Literal["field", "network", "tree"]
    bias: str = "none"
    target: str | None = None
    latents: int = 1
    constant: bool = False
    positive: bool = False
    plan: Any = None
    beside: tuple[str, ...] = ()
    mixing: str = ""


class PlainRecipe:
    """What most recipes say of themselves: they wrap none, and see the data as they are."""

    def __repr__(self) -> str:
        """Tell the settings that differ from the defaults, arrays by their shape."""
        return in_words(self)

    @property
    def inner(self) -> Recipe | None:
        """No recipe is wrapped."""
        return None

    @property
    def fitted(self) -> Fitted:
        """All parameters are found at once."""
        return "whole"

    def refuses(self, weights: Weights) -> str | None:
        """Take any composite weights."""
        return None

    def view(self, data: Dataset) -> Dataset:
        """Return the data as they are."""
        return data

    def view_of(self, support: Support) -> Support:
        """Return the regions as they are."""
        return support

    def sketch(self, data: Dataset) -> "Sketch | None":
        """Have no picture."""
        return None

    def frame(self, data: Dataset) -> Frame:
        """Centre inputs and values."""
        return Frame.of(data)


def innermost(recipe: Recipe) -> Any:
    """Return the recipe inside all that wrap it.

    >>> from mrgp import CenterPoint, MRGP
    >>> innermost(CenterPoint(MRGP())) == MRGP()
    True
    """
    while recipe.inner is not None:
        recipe = recipe.inner
    return recipe


@runtime_checkable
class Model(Protocol):
    """A model with parameters: an equinox module made by a recipe for a dataset.

    >>> from mrgp import MRGP, Observations, points
    >>> data = Dataset([Observations(points([[0.0], [1.0]]), [0.0, 2.0])])
    >>> isinstance(MRGP().build(data), Model), isinstance(MRGP(), Model)
    (True, False)
    """

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task)."""
        ...

    @property
    def linear(self) -> "Linear | None":
        """The model as a linear-Gaussian one, where it is."""
        ...

    @property
    def variational(self) -> "Variational | None":
        """The model as one with a posterior q to train, where it can have one."""
        ...

    @property
    def composite(self) -> "Composite | None":
        """The model as one of sources that can be taken one by one, where they can."""
        ...

    @property
    def approximate(self) -> Any:
        """The model as one whose posterior is approximated in steps, where it is."""
        ...

    @property
    def maps(self) -> "Mapping[Any, LearnedMap]":
        """Maps that were learned from values of a source, or task, to those of the target."""
        ...

    def log_evidence(self, records: Records) -> Float[Array, ""]:
        """Return the log evidence of the records, or a lower bound on it."""
        ...

    def condition(self, records: Records) -> State:
        """Return the posterior state that prediction needs."""
        ...

    def predict(self, state: State, support: Support, asked: Question) -> Components:
        """Return what a task is on a support, or what a source reports of it, without noise."""
        ...

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation of a process."""
        ...

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name."""
        ...

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters by name, in the user's units."""
        ...

    def account(self, state: State) -> str:
        """Say how the posterior is held."""
        ...


class PlainModel:
    """What a model says of itself that has none of the capabilities below."""

    @property
    def linear(self) -> "Linear | None":
        """It is not linear."""
        return None

    @property
    def variational(self) -> "Variational | None":
        """It has no q."""
        return None

    @property
    def composite(self) -> "Composite | None":
        """Its sources cannot be taken one by one."""
        return None

    @property
    def approximate(self) -> Any:
        """Its posterior is not approximated in steps."""
        return None

    @property
    def maps(self) -> "Mapping[Any, LearnedMap]":
        """It learns no maps."""
        return {}


@runtime_checkable
class LearnedMap(Protocol):
    """A map from values of a source, or of another task, to those of the target.

    >>> from mrgp import MRDGP, Observations, points
    >>> x = points([[0.0], [1.0], [2.0]])
    >>> seen = [Observations(x, [0.0, 2.0, 1.0], name=name) for name in ("sites", "model")]
    >>> MRDGP(target="sites").build(Dataset(seen)).maps["model"].target
    'sites'
    """

    @property
    def label(self) -> str:
        """The source, or task, that it maps from."""
        ...

    @property
    def target(self) -> str:
        """The source that it maps to."""
        ...

    @property
    def task(self) -> str:
        """The task of the target."""
        ...

    @property
    def source_task(self) -> str:
        """The task of what it maps from."""
        ...

    @property
    def beside(self) -> tuple[str, ...]:
        """The other inputs over which it changes."""
        ...

    def range(self) -> tuple[float, float]:
        """The least and the greatest value that it was learned on."""
        ...

    def centre(self) -> Float[np.ndarray, " b"]:
        """The middle of the data in the other inputs."""
        ...

    def scatter(self) -> float:
        """The standard deviation of the target about the map."""
        ...

    def evaluate(
        self, state: State, values: Float[np.ndarray, " n"], at: Float[np.ndarray, " b"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return mean and variance of the target at values of the source, at one place."""
        ...


@runtime_checkable
class Composite(Model, Protocol):
    """A model whose sources can be taken one by one: what composite weights rest on.

    >>> from mrgp import MRGP, Observations, points
    >>> seen = [Observations(points([[0.0], [1.0]]), [0.0, 2.0], name=name) for name in "ab"]
    >>> MRGP().build(Dataset(seen)).composite.alone(1).processes
    (('b', 'value'),)
    """

    @property
    def coupling(self) -> tuple[Any, ...]:
        """Parameters that no source shows alone, such as biases."""
        ...

    @property
    def masks(self) -> bool:
        """Whether records may have rows that are not used, which fill them up to a size."""
        ...

    def alone(self, process: int) -> "Composite":
        """Return the model of one process, with the parameters of all."""
        ...

    def smoother(self, records: Records) -> Smoother:
        """Return how the posterior mean smooths the records, in units of their noise."""
        ...


@runtime_checkable
class Linear(Composite, Protocol):
    """A linear-Gaussian model: kernels, solver, and what sources read of the latent functions.

    >>> from mrgp import MRGP, Observations, points
    >>> data = Dataset([Observations(points([[0.0], [1.0]]), [0.0, 2.0])])
    >>> MRGP().build(data).linear.solver.keeps_data
    True
    """

    solver: Solver

    @property
    def field(self) -> Kernel | None:
        """The kernel of the one field that all sources see, None where there are several."""
        ...

    @property
    def own(self) -> dict[str, Kernel]:
        """The kernels of what sources have of their own beside that field, by source."""
        ...

    def alone(self, process: int) -> "Linear":
        """Return the model of one process, with the parameters of all."""
        ...

    def readings(self, records: Records) -> Readings:
        """Return what the sources read of the latent functions."""
        ...

    def condition(self, records: Records) -> Conditioned:
        """Condition the latent functions on the records."""
        ...

    def plan_of(self, records: Records) -> Any:
        """Return what can be found of records before parameters are known."""
        ...

    def with_plan(self, plan: Any) -> "Linear":
        """Return the model for records of a plan, or, without one, for any."""
        ...

    def part(
        self, state: Conditioned, term: Kernel, support: Support
    ) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Return mean and covariance of one term of the kernel of a single field, on a support."""
        ...

    def solved(self, records: Records) -> Conditioned:
        """Condition on records outside transformations of JAX, by LAPACK."""
        ...

    def extended(self, state: Conditioned, records: Records) -> Conditioned | None:
        """Return the posterior of records whose first rows a state has seen, or None."""
        ...

    def holding(self, state: Conditioned, records: Records) -> Conditioned:
        """Return an exact posterior that holds the records' own supports, not copies."""
        ...

    def moments(
        self,
        state: Conditioned,
        support: Support,
        task: str,
        source: str | None,
        joint: bool = False,
    ) -> tuple[Float[Array, " n"], Float[Array, "n *n"]]:
        """Return mean and variance, or joint covariance, of a task or of what a source reads."""
        ...

    def values(self, scaling: Scaling) -> dict[str, Array]:
        """Return what `report` does, inside transformations of JAX too."""
        ...


@runtime_checkable
class Variational(Model, Protocol):
    """A model with a posterior q of inducing variables, whose bound is a sum over rows.

    >>> from mrgp import MRGP, Observations, points
    >>> data = Dataset([Observations(points([[0.0], [1.0]]), [0.0, 2.0])])
    >>> MRGP().build(data).variational is None, MRGP(method="svgp").build(data).variational is None
    (True, False)
    """

    q: Any

    @property
    def natural_rate(self) -> float:
        """A natural-gradient step of all of q on all data that does not overshoot."""
        ...

    @property
    def explicit(self) -> bool:
        """Whether the best q for given parameters is known in closed form."""
        ...

    def with_q(self, q: Any) -> "Variational":
        """Return the model with another q, or without one."""
        ...

    def started(self) -> "Variational":
        """Return the model with a q to start from, where it has none."""
        ...

    def natural_q(self) -> Any:
        """Return the q from which natural gradients start, by natural parameters, if it has any."""
        ...

    def with_natural(self, q: Any) -> "Variational":
        """Return the model with the q that natural gradients found."""
        ...

    def optimal_q(self, records: Records) -> Any:
        """Return the best q, by natural parameters, where it is explicit."""
        ...

    def expected_log_likelihood(self, q: Any, records: Records) -> Float[Array, ""]:
        """Return E_q[log p(records)], each row times its weight."""
        ...

    def full_bound(self, q: Any, records: Records) -> Float[Array, ""]:
        """Return the bound on all data at a q by natural parameters, or at the best one."""
        ...
