"""`Chains`: draws from a posterior, how well they have mixed, and predictions from them."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import float64
from mrgp.data import Scaling
from mrgp.inference.fits import Learned
from mrgp.inference.loop import Status
from mrgp.inference.mcmc import diagnostics
from mrgp.inference.mcmc.target import Target
from mrgp.likelihoods import Likelihood
from mrgp.models import Components, Linear, Process, Question, Recipe, as_arrays
from mrgp.models.answers import in_chunks
from mrgp.supports import Axis, Field, Support

GOOD, FAIR = 1.01, 1.05
"""R-hat up to which chains count as mixed, and up to which for rough use."""

LEAST_SIZE = 100
DRAWS = 100
LARGE = 2**23
"""So many numbers a region that chunks are the smallest there are."""


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Chains(Learned):
    """Draws from the posterior of a model: `parameters` has [chains, draws, ...] for each name.

    Names and units are those of `Fit.parameters()`. `acceptance` is the share of moves that were
    accepted in each block, for each chain. `mrgp.predict` takes chains in place of a fit.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> chains = mrgp.sample_posterior(
    ...     mrgp.MRGP(), mrgp.Dataset([seen]), chains=2, samples=500, warmup=500
    ... )
    >>> len(chains), chains.parameters["kernel.variance"].shape
    (500, (2, 500))
    """

    parameters: dict[str, np.ndarray]
    acceptance: dict[str, Float[np.ndarray, " c"]]
    status: Status
    method: str
    recipe: Recipe
    target: Target
    theta: Float[np.ndarray, "c t p"]
    z: Float[np.ndarray, "c t m"] | None
    scaling: Scaling
    inputs: tuple[str, ...]
    units: dict[str, str | None]
    weights: dict[tuple[str, str], float]
    axes: tuple[Axis | None, ...] | None
    covariates: tuple[Field, ...] | None
    likelihoods: dict[Process, Likelihood]

    def __len__(self) -> int:
        return self.theta.shape[1]

    @property
    def model(self) -> Linear:
        """The model with its starting values."""
        return self.target.objective.model(self.target.objective.start)

    def r_hat(self) -> dict[str, np.ndarray]:
        """Return R-hat of every parameter: one is perfect; NaN for those that are fixed."""
        return _each(diagnostics.r_hat, self.parameters)

    def effective_sample_size(self) -> dict[str, np.ndarray]:
        """Return how many independent draws each parameter's draws are worth."""
        return _each(diagnostics.effective_sample_size, self.parameters)

    def predict(self, support: Support, **options: Any) -> Any:
        """Predict on any support, as `mrgp.predict(chains, support, ...)` does."""
        from mrgp.prediction import predict

        return predict(self, support, **options)

    @float64
    def components(self, support: Support, asked: Question, noise: bool = False) -> Components:
        """Return a mixture with one Gaussian for each draw taken, spread evenly over all chains.

        The support is in centred coordinates.
        """
        if asked.joint:
            raise ValueError(
                "predict: joint=True is for fits; chains predict each region by itself. Leave it"
                " out, or predict from mrgp.fit(model, data)."
            )
        support = self.recipe.view_of(support)
        theta, z = self._thinned(DRAWS if asked.samples is None else max(int(asked.samples), 1))
        draws, target = as_arrays((theta, z)), as_arrays(self.target)
        means, variances = in_chunks(
            lambda part: _moments(target, draws, part, asked.task, asked.source), support, LARGE
        )
        found = Components(np.full(means.shape, 1 / len(theta)), means, variances)
        if not noise:
            return found
        process = (str(asked.source), asked.task)
        return found.observed(self.likelihoods[process], self._noises(theta, process)[None])

    def _noises(self, theta: Float[np.ndarray, "k p"], process: tuple[str, str]) -> np.ndarray:
        models = (self.target.model(jnp.asarray(t)) for t in theta)
        return np.array([model.observation_noise(process) for model in models])

    def _thinned(self, samples: int) -> tuple[np.ndarray, np.ndarray | None]:
        theta = np.concatenate(self.theta)
        z = None if self.z is None else np.concatenate(self.z)
        count = min(samples, len(theta))
        index = (np.arange(count) * len(theta)) // count
        return theta[index], None if z is None else z[index]

    def summary(self) -> str:
        """Describe the posterior in a table, and say in words where draws are too few."""
        chains, draws = self.theta.shape[:2]
        counted = f"{_counted(chains, 'chain')} of {_counted(draws, 'draw')}"
        lines = [f"{self.method}, {counted}, {self.status}"]
        for process, weight in self.weights.items():
            if weight != 1:
                lines.append(f"  {process[0]}, {process[1]}: composite weight {weight:.3g}")
        rates = {name: float(rate.mean()) for name, rate in self.acceptance.items()}
        divergent = rates.pop("divergent", 0.0)
        shown = ", ".join(f"{name} {rate:.2f}" for name, rate in rates.items())
        lines.append(f"  accepted: {shown or 'nothing to move'}")
        if divergent > 0:
            lines.append(f"  {divergent:.1%} of the trajectories diverged; raise warmup=")
        rows, remarks = _table(self.parameters, chains)
        return "\n".join([*lines, *rows, *remarks])

    def plot(self, names: Any = None) -> Any:
        """Draw the way of each chain, and its histogram; return the figure.

        `names` are those of `parameters`; by default the first eight that vary.
        """
        from mrgp.plotting import plot_chains

        return plot_chains(self.parameters, names)

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ has them, for its plots and diagnostics."""
        try:
            import arviz  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ImportError("to_arviz needs ArviZ: pip install arviz.") from None
        draws = dict(self.parameters)
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict({"posterior": draws})
        return arviz.from_dict(posterior=draws)

    def __repr__(self) -> str:
        chains, draws = self.theta.shape[:2]
        return f"Chains({self.method}, {chains} chains of {draws} draws, {self.status})"


@eqx.filter_jit
def _moments(
    target: Target, draws: Any, support: Support, task: str, source: str | None
) -> tuple[Array, Array]:
    def one(draw: Any) -> tuple[Array, Array]:
        theta, z = draw
        return target.model(theta).moments(target.state(theta, z), support, task, source)

    means, variances = jax.lax.map(one, draws)
    return means.T, variances.T


def _each(measure: Any, parameters: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Measure every number of every parameter."""
    found = {}
    for name, values in parameters.items():
        flat = values.reshape(*values.shape[:2], -1)
        numbers = [measure(flat[:, :, i]) for i in range(flat.shape[2])]
        found[name] = np.array(numbers).reshape(values.shape[2:])
    return found


def worst_r_hat(parameters: dict[str, np.ndarray]) -> tuple[str, float]:
    """Return the name and R-hat of the parameter that has mixed least; "" and one without any."""
    found = _each(diagnostics.r_hat, parameters)
    known = {n: float(np.nanmax(v)) for n, v in found.items() if np.isfinite(v).any()}
    known |= {n: float("inf") for n, v in found.items() if np.isinf(v).any()}
    name = max(known, key=known.__getitem__, default="")
    return name, known.get(name, 1.0)


def _table(parameters: dict[str, np.ndarray], chains: int) -> tuple[list[str], list[str]]:
    head = ("", "mean", "sd", "5 %", "50 %", "95 %", "R-hat", "ESS")
    rows: list[tuple[str, ...]] = [head]
    r_hats: dict[str, float] = {}
    sizes: dict[str, float] = {}
    for name, values in parameters.items():
        flat = values.reshape(*values.shape[:2], -1)
        for i in range(flat.shape[2]):
            label = name if flat.shape[2] == 1 else f"{name}[{i}]"
            draws = flat[:, :, i]
            mixed = diagnostics.r_hat(draws), diagnostics.effective_sample_size(draws)
            numbers = draws.mean(), draws.std(), *np.quantile(draws, [0.05, 0.5, 0.95])
            shown = ["", "fixed"] if np.isnan(mixed[0]) else [f"{mixed[0]:.3f}", f"{mixed[1]:.0f}"]
            rows.append((label, *(f"{v:.4g}" for v in numbers), *shown))
            if not np.isnan(mixed[0]):
                r_hats[label], sizes[label] = mixed
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "  "
        + "  ".join(
            [f"{row[0]:<{widths[0]}}"]
            + [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    ]
    return lines, _remarks(r_hats, sizes, chains)


def _remarks(r_hats: dict[str, float], sizes: dict[str, float], chains: int) -> list[str]:
    """Say in words what is wrong with the draws, by the parameters that have mixed least."""
    found = []
    worst = max(r_hats, key=r_hats.__getitem__, default=None)
    if worst is not None and r_hats[worst] > FAIR and chains > 1:
        found.append(
            f"  {worst}: the chains disagree (R-hat {r_hats[worst]:.2f}); do not use these draws."
        )
    elif worst is not None and r_hats[worst] > GOOD:
        found.append(f"  {worst}: not quite mixed (R-hat {r_hats[worst]:.3f}); raise samples=.")
    fewest = min(sizes, key=sizes.__getitem__, default=None)
    if fewest is not None and sizes[fewest] < LEAST_SIZE * chains:
        found.append(
            f"  {fewest}: worth {sizes[fewest]:.0f} independent draws; for tails have"
            f" {LEAST_SIZE * chains} or more: raise samples=."
        )
    return found


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
