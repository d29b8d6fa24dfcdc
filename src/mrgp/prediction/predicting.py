"""`predict` a task on any support."""

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.data import Observations, as_key
from mrgp.gp import too_few_nodes
from mrgp.inference import Chains, Fit
from mrgp.inference.alignment import aligned, labelled
from mrgp.inference.objectives import as_arrays
from mrgp.models import Network, Tree
from mrgp.parameters import unwrap
from mrgp.prediction.values import Components, Prediction, Vector
from mrgp.supports import Support

CHUNK_BYTES = 2**26
SMALLEST_CHUNK, LARGEST_CHUNK = 2**6, 2**14
LARGEST_JOINT = 5000
LARGEST_PATHS = 10**8
DEFAULT_SAMPLES, DRAWS = 50, 100


@float64
def predict(
    fit: Fit | Chains,
    support: Support,
    task: str | None = None,
    source: str | None = None,
    noise: bool = False,
    key: Any = 0,
    samples: int | None = None,
    *,
    joint: bool = False,
) -> Prediction:
    """Predict a task on any support.

    Without a `source` the prediction is of the quantity of interest; with one it is what that
    source would report, bias included, without noise unless `noise=True`. `joint=True` adds the
    covariance between regions.

    Mean and variance are in closed form. What a network of GPs predicts is not Gaussian: its shape
    is that of a mixture over `samples` draws of the weights W (default 50; 0 gives one Gaussian),
    made with `key` at the inducing variables, so that a region gets the same answer alone or among
    others. What a deep model predicts is a mixture over its experts and `samples` paths through
    the tree (default: those of the recipe), with `experts` and `weights` beside it. With
    `joint=True`, and for other models, the prediction is one Gaussian. From chains it is a mixture
    over `samples` of their draws (default 100).

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> len(mrgp.predict(fit, mrgp.intervals([0.0], [2.0])))
    1
    """
    if not isinstance(fit, Fit | Chains):
        raise TypeError(
            f"predict takes a fit as first argument; got {type(fit).__name__}. Call"
            " mrgp.fit(model, data) first."
        )
    if not isinstance(support, Support):
        raise TypeError(
            f"predict takes a support such as mrgp.points(x); got {type(support).__name__}."
        )
    task, source = _resolve(fit, task, source, noise)
    centred = aligned(fit, support)
    count = _samples(fit, samples, joint)
    made = {
        "support": labelled(fit, support),
        "task": task,
        "source": source,
        "units": fit.units.get(task),
    }
    if isinstance(fit, Fit) and isinstance(fit.model, Tree) and not joint and len(support):
        added = fit.model.observation_noise((str(source), task)) if noise else 0.0
        whole, experts, shares = _of_tree(fit, centred, task, source, as_key(key), count, added)
        alone = {label: Prediction(**made, **_named(found)) for label, found in experts.items()}
        return Prediction(**made, **_named(whole), experts=alone, weights=shares)
    if isinstance(fit, Chains):
        if joint:
            raise ValueError(
                "predict: joint=True is for fits; chains predict each region by itself. Leave it"
                " out, or predict from mrgp.fit(model, data)."
            )
        found = fit.components(centred, task, source, count, noise)
        weights, means, variances, covariance = *found, None
    else:
        found = _of_fit(fit, centred, task, source, as_key(key), count, joint)
        weights, means, variances, covariance = found
        if noise and source is not None:
            added = fit.model.observation_noise((source, task))
            variances = variances + added
            covariance = None if covariance is None else covariance + added * np.eye(len(centred))
    means = means + fit.scaling.offset[fit.scaling.index(task)] * np.asarray(centred.total)
    return Prediction(**made, **_named((weights, means, variances)), covariance=covariance)


def predict_values(fit: Fit, observed: Observations, key: Any = 0) -> Prediction:
    """Predict values of a source that was fitted, with their own noise where it is known.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> new = mrgp.Observations(mrgp.points([[0.5], [0.5]]), [0.4, 0.9], noise_variance=[1.0, 4.0])
    >>> np.diff(predict_values(fit, new).variance).round(9)
    array([3.])
    """
    known = observed.noise_variance
    asked: dict[str, Any] = {"task": observed.task, "source": observed.name, "key": key}
    found = predict(fit, observed.support, **asked, noise=known is None)
    if known is None:
        return found
    # A missing value may have no noise; it is not scored either.
    added = np.where(np.isnan(known), 0.0, known)
    return dataclasses.replace(found, variances=found.variances + added[None])


def _named(components: tuple[Components, Components, Components]) -> dict[str, Any]:
    return dict(zip(("component_weights", "means", "variances"), components, strict=True))


def _of_tree(
    fit: Fit,
    support: Support,
    task: str,
    source: str | None,
    key: jax.Array,
    count: int,
    noise: float,
) -> tuple[Any, dict[str, Any], dict[str, Vector]]:
    """Return components of a deep model's prediction, those of its experts, and their weights."""
    model, state = as_arrays((fit.model, fit.state))
    parts = []
    for rows, chunk in _chunks(fit, support):
        part, given = as_arrays((chunk, fit.model.asked(chunk, task, source)))
        found = _compiled("components", model, state, part, task, source, key, count, given)
        kept = rows.stop - rows.start
        parts.append(jax.tree.map(lambda x, kept=kept: np.asarray(x)[:kept], found))
    whole = jax.tree.map(lambda *several: np.concatenate(several), *parts)
    # In order of trust; trees of arrays have their keys sorted.
    labels = [label for label, _ in fit.model.blend(task).experts if label in whole.experts]
    experts = {}
    for label in labels:
        means, variances = whole.experts[label]
        weights = np.full(means.shape, 1.0 / means.shape[1])
        experts[label] = (weights.T, means.T, variances.T + noise)
    mixture = (whole.weights.T, whole.means.T, whole.variances.T + noise)
    return mixture, experts, {label: whole.shares[label] for label in labels}


def _of_fit(
    fit: Fit,
    support: Support,
    task: str,
    source: str | None,
    key: jax.Array,
    count: int,
    joint: bool,
) -> tuple[Components, Components, Components, Float[np.ndarray, "n n"] | None]:
    """Return weights, means and variances of components, and the joint covariance if asked for."""
    if isinstance(fit.model, Network):
        _warn_of_wide_regions(fit, support)
    if joint:
        mean, covariance = _joint(fit, support, task, source, key, count)
        variance = np.diag(covariance).copy()
    else:
        mean, variance = _moments(fit, support, task, source)
        covariance = None
    weights, means, variances = np.ones((1, len(mean))), mean[None], variance[None]
    if count and isinstance(fit.model, Network):
        weights, means, variances = _mixture(fit, support, task, source, key, count)
        means, variances = _with_moments(weights, means, variances, mean, variance)
    return weights, means, variances, covariance


def _warn_of_wide_regions(fit: Fit, support: Support) -> None:
    text = too_few_nodes(unwrap(fit.model.kernels_f), support, fit.model.rule)
    if text:
        warnings.warn(f"predict: {text} in a fit of MRGPRN, or predict parts.", stacklevel=5)


def _samples(fit: Fit | Chains, samples: int | None, joint: bool) -> int:
    """Return how many draws to mix: none for models that are Gaussian."""
    whole = isinstance(samples, int | np.integer) and not isinstance(samples, bool)
    if samples is not None and not (whole and samples >= 0):
        raise ValueError(f"predict: samples must be a whole number, or None; got {samples!r}.")
    if isinstance(fit, Chains):
        return DRAWS if samples is None else max(int(samples), 1)
    if isinstance(fit.model, Tree):
        return fit.model.samples if samples is None else max(int(samples), 1)
    if joint or not isinstance(fit.model, Network):
        return 0
    return DEFAULT_SAMPLES if samples is None else int(samples)


def _with_moments(
    weights: Components, means: Components, variances: Components, mean: Vector, variance: Vector
) -> tuple[Components, Components]:
    """Move and stretch a mixture to the mean and variance that are known in closed form."""
    centre = (weights * means).sum(0)
    spread = (weights * (variances + (means - centre) ** 2)).sum(0)
    ratio = variance / np.where(spread > 0, spread, 1.0)
    return mean + np.sqrt(ratio) * (means - centre), ratio * variances


def _resolve(
    fit: Fit | Chains, task: str | None, source: str | None, noise: bool
) -> tuple[str, str | None]:
    """Return the task and source meant, or say which there are."""
    if task is None:
        if len(fit.tasks) > 1:
            raise ValueError(f"predict: say which task; the fit has {fit.tasks}.")
        task = next(iter(fit.tasks))
    if task not in fit.tasks:
        raise ValueError(f"predict: no task is named {task!r}; the fit has {fit.tasks}.")
    sources = [s for s, t in fit.processes if t == task]
    if source is not None and source not in sources:
        raise ValueError(
            f"predict: no source of task {task!r} is named {source!r}; it has {sources}."
        )
    if noise and source is None:
        if len(sources) > 1:
            raise ValueError(
                f"predict: noise=True needs source=, since the sources of task {task!r} differ in"
                f" noise; they are {sources}."
            )
        source = sources[0]
    return task, source


@eqx.filter_jit
def _compiled(method: str, model: Any, *arguments: Any) -> Any:
    return getattr(model, method)(*arguments)


def _moments(fit: Fit, support: Support, task: str, source: str | None) -> tuple[Vector, Vector]:
    mean, variance = _in_chunks("moments", fit, support, 1, task, source)
    return mean[0], variance[0]


def _mixture(
    fit: Fit, support: Support, task: str, source: str | None, key: jax.Array, samples: int
) -> tuple[Components, Components, Components]:
    """Return weights, means and variances of a mixture over draws."""
    draws = as_arrays(fit.model).base_draws(key, samples)
    weights = np.repeat(np.asarray(fit.state.q.weights) / samples, samples)
    found = _in_chunks("mixture", fit, support, len(weights), task, source, draws)
    return np.broadcast_to(weights[:, None], found[0].shape), *found


def _in_chunks(
    method: str, fit: Fit, support: Support, components: int, *arguments: Any
) -> tuple[Components, Components]:
    """Predict means and variances chunk by chunk."""
    shape = (components, len(support))
    means, variances = np.empty(shape), np.empty(shape)
    model, state = as_arrays((fit.model, fit.state))
    for rows, chunk in _chunks(fit, support):
        values = _compiled(method, model, state, as_arrays(chunk), *arguments)
        kept = rows.stop - rows.start
        means[:, rows], variances[:, rows] = (np.asarray(v)[..., :kept] for v in values)
    return means, variances


def _chunks(fit: Fit, support: Support) -> Iterator[tuple[slice, Support]]:
    """Cut regions into chunks of one size, so that memory is bounded and code compiled once.

    The last chunk is filled up with its last region; the slice says which regions count.
    """
    n, size = len(support), _chunk_size(fit, support)
    for start in range(0, n, size):
        rows = np.minimum(np.arange(start, start + size), n - 1)
        yield slice(start, min(start + size, n)), support[rows]


def _chunk_size(fit: Fit, support: Support) -> int:
    columns = max(leaf.shape[-1] for leaf in jax.tree.leaves(fit.state) if np.ndim(leaf))
    wanted = CHUNK_BYTES // (8 * columns)
    size = SMALLEST_CHUNK
    while size < min(wanted, len(support), LARGEST_CHUNK):
        size *= 2
    return size


def _joint(
    fit: Fit, support: Support, task: str, source: str | None, key: jax.Array, count: int
) -> tuple[Vector, Float[np.ndarray, "n n"]]:
    if len(support) > LARGEST_JOINT:
        raise ValueError(
            f"predict: joint=True keeps a matrix of {len(support)} x {len(support)} numbers; at"
            f" most {LARGEST_JOINT} regions are allowed. Predict fewer at a time."
        )
    if len(support) == 0:
        return np.zeros(0), np.zeros((0, 0))
    if isinstance(fit.model, Tree):
        nodes = len(support) * support.quadrature(fit.model.rule).nodes_per_region
        if nodes**2 * count > LARGEST_PATHS:
            raise ValueError(
                f"predict: joint=True of a deep model keeps {count} matrices of {nodes} x {nodes}"
                " nodes, which is too much. Predict fewer regions at a time, or with fewer samples."
            )
    model, state, part = as_arrays((fit.model, fit.state, support))
    arguments: tuple[Any, ...] = (task, source)
    if isinstance(fit.model, Tree):
        asked = as_arrays(fit.model.asked(support, task, source))
        arguments = (*arguments, asked, key, count)
    mean, covariance = _compiled("joint", model, state, part, *arguments)
    return np.asarray(mean), np.asarray(covariance)
