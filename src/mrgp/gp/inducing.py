"""Where inducing inputs go: k-means, a grid, a subset, or greedily by conditional variance."""

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.cluster.vq import ClusterError, kmeans2

from mrgp.kernels import Kernel
from mrgp.parameters import Parameter, fixed, real
from mrgp.supports import Geometry, Midpoint, Sobol, Support

Strategy = Literal["kmeans", "grid", "subset", "greedy"]
Place = Float[np.ndarray, " d"]
MOST_CANDIDATES = 20_000
FEW, MANY = 200, 500


@dataclasses.dataclass(frozen=True)
class Inducing:
    """How many inducing inputs, where, and whether they are trained.

    The default number is 200 for one input and 500 for more. `locations` gives them outright, in
    the user's coordinates. Where the data have no more distinct nodes than the number, the nodes
    themselves are used.

    >>> Inducing(100, strategy="greedy")
    Inducing(number=100, strategy='greedy', train=False, locations=None)
    """

    number: Any = None
    strategy: str = "kmeans"
    train: bool = False
    locations: Any = None

    def __post_init__(self) -> None:
        whole = isinstance(self.number, int | np.integer)
        if self.number is not None and not (whole and self.number >= 1):
            raise ValueError(
                f"inducing: the number must be a whole number, at least 1; got {self.number}."
            )
        if self.strategy not in get_args(Strategy):
            raise ValueError(
                f"inducing: the strategy is one of {get_args(Strategy)}; got {self.strategy!r}."
            )
        if self.locations is not None:
            locations = np.asarray(self.locations, np.float64)
            if locations.ndim != 2 or not np.isfinite(locations).all():
                raise ValueError(
                    f"inducing: locations must be finite with shape [m, d]; got {locations.shape}."
                )

    @classmethod
    def parse(cls, value: Any) -> "Inducing":
        """Accept None, a number, a strategy, an array of locations, or an `Inducing`."""
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(strategy=value)
        if isinstance(value, int | float | np.number):
            return cls(value)
        locations = np.asarray(value, dtype=np.float64)
        return cls(max(len(np.atleast_1d(locations)), 1), locations=locations)

    def choose(self, supports: Sequence[Support], kernel: Kernel, seed: int) -> np.ndarray:
        """Choose inducing inputs among the nodes of supports, all in centred coordinates."""
        rng = np.random.default_rng(seed)
        geometry, candidates = Geometry.of(supports), _candidates(supports, rng)
        number = self.number or (FEW if candidates.shape[1] == 1 else MANY)
        if self.strategy == "grid":
            return _grid(candidates, number, geometry)
        if len(candidates) <= number:
            return candidates
        if self.strategy == "greedy":
            return _greedy(candidates, number, kernel)
        if self.strategy == "kmeans":
            scaled = candidates / geometry.extent
            with contextlib.suppress(ClusterError):
                centres, _ = kmeans2(scaled, number, minit="++", missing="raise", rng=rng)
                return centres * geometry.extent
        return candidates[np.sort(rng.choice(len(candidates), number, replace=False))]


def start_locations(
    inducing: Inducing, supports: tuple[Support, ...], centre: Place, kernel: Kernel, seed: int
) -> Parameter:
    """Place inducing inputs for centred supports, or centre those given, as a parameter.

    >>> from mrgp import RBF, points
    >>> kernel, x = RBF(1.0, variance=1.0, dims=0), (points([[-1.0], [0.0], [1.0]]),)
    >>> start_locations(Inducing(locations=[[7.0]]), x, np.array([5.0]), kernel, 0).value.tolist()
    [[2.0]]
    """
    if inducing.locations is None:
        locations = inducing.choose(supports, kernel, seed)
    else:
        locations = np.asarray(inducing.locations, np.float64)
        if locations.shape[1] != supports[0].dimension:
            raise ValueError(
                f"inducing: locations have {locations.shape[1]} inputs and the data have"
                f" {supports[0].dimension}: {supports[0].input_names}."
            )
        locations = locations - centre
    if not inducing.train:
        return fixed(locations)
    return real(locations, scale=Geometry.of(supports).typical)


def _candidates(supports: Sequence[Support], rng: np.random.Generator) -> np.ndarray:
    """Return the distinct nodes of all supports, thinned at random where there are too many."""
    share = MOST_CANDIDATES // len(supports)
    nodes = []
    for support in supports:
        rows = np.arange(len(support))
        if len(rows) > share:
            rows = rng.choice(len(rows), share, replace=False)
        sides = support.atoms().flat.count(False)
        part = support[rows].quadrature(Midpoint(3) if sides <= 3 else Sobol(32)).atoms()
        used = np.asarray(part.lower)[np.asarray(part.weights) != 0]
        if len(used) > share:
            used = used[rng.choice(len(used), share, replace=False)]
        nodes.append(used)
    return np.unique(np.concatenate(nodes), axis=0)


def _grid(candidates: np.ndarray, number: int, geometry: Geometry) -> np.ndarray:
    """Spread at most `number` inputs evenly over the bounding box, more along finer inputs."""
    lower, upper = candidates.min(0), candidates.max(0)
    active = upper > lower
    ratio = np.where(active, geometry.extent / geometry.spacing, 1.0)
    counts = grown = np.ones(len(lower), dtype=int)
    while active.any() and np.prod(grown) <= number:
        counts, finest = grown, np.argmax(np.where(active, ratio / grown, 0.0))
        grown = counts + (np.arange(len(counts)) == finest)
    sides = [
        np.linspace(a, b, c) if c > 1 else np.array([0.5 * (a + b)])
        for a, b, c in zip(lower, upper, counts, strict=True)
    ]
    return np.stack([g.ravel() for g in np.meshgrid(*sides, indexing="ij")], -1)


def _greedy(candidates: np.ndarray, number: int, kernel: Kernel) -> np.ndarray:
    """Add the candidate of largest variance given those chosen: a pivoted Cholesky."""
    x = jnp.asarray(candidates)
    left = np.array(kernel.pair(x, x))
    floor = 1e-10 * left.max()
    rows, chosen = np.zeros((number, len(candidates))), []
    for i in range(number):
        pivot = int(np.argmax(left))
        if left[pivot] <= floor:
            break
        chosen.append(pivot)
        column = np.asarray(kernel.cross(x[pivot][None], x))[0]
        rows[i] = (column - rows[:i, pivot] @ rows[:i]) / np.sqrt(left[pivot])
        left = np.maximum(left - rows[i] ** 2, 0.0)
        left[pivot] = 0.0
    return candidates[np.sort(chosen)]
