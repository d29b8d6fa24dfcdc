"""The kernel of a field where none is given: what the inputs are, and what averages cost."""

from collections.abc import Callable, Sequence

import equinox as eqx
import numpy as np

from mrgp.data import Dataset
from mrgp.kernels import (
    RBF,
    Kernel,
    Matern12,
    Matern32,
    Separable,
    Stationary,
    White,
    single_kernels,
)
from mrgp.kernels.binding import LARGEST
from mrgp.parameters import LogNormal, positive
from mrgp.supports import DEFAULT_RULE, Geometry, Rule, Support, grouped

LINK_LOG_SD = 0.1
FEWEST_PLACES, FEWEST_TIMES = 3, 5
MOST_NODES, MOST_NODES_OF_PLACES = 400, 1500
"""The most quadrature nodes for which a kernel of distances is averaged over regions.

Those of a network are averaged once for each place, whatever the number of times.
"""


def default_kernel(data: Dataset, geometry: Geometry, rule: Rule = DEFAULT_RULE) -> Kernel:
    """Return the kernel of a network where places repeat in time (theory 12.2), or `plain_kernel`.

    >>> import mrgp
    >>> data = Dataset([mrgp.Observations(mrgp.points([[0.0], [1.0]]), [3.0, 4.0])])
    >>> type(default_kernel(data, Geometry.of(data.supports))).__name__
    'Matern32'
    """
    of = network_kernel if repeats(data) else plain_kernel
    return of(data, geometry, rule)


def plain_kernel(
    data: Dataset,
    geometry: Geometry,
    rule: Rule = DEFAULT_RULE,
    of: Callable[..., Kernel] = Matern32,
) -> Kernel:
    """Return a Matern-3/2 kernel: of the distance within a space, times one of each other input.

    Covariates are left out: they have effects of their own. A kernel of distances has no preferred
    directions. Over boxes it is averaged by quadrature, and where these are too many a product over
    the inputs stands in, with one lengthscale still. `of` is the class of the kernel.

    >>> import mrgp
    >>> x = mrgp.points([[0.0, 51.0, 1.0]], inputs=("lon", "lat", "time"))
    >>> data = Dataset([mrgp.Observations(x, [3.0])])
    >>> [k.dims for k in plain_kernel(data, Geometry.of(data.supports)).kernels]
    [('lon', 'lat'), ('time',)]
    """
    names = geometry.names
    places = [d for d in range(len(names)) if d not in geometry.covariates]
    groups = grouped(places, geometry.spaces)
    radial = [g for g in groups if len(g) > 1 and _affordable(g, data.supports, rule)]
    apart = {} if of is RBF else {"product": True}
    if not radial:
        return of(**apart)
    if len(groups) == 1:
        return of()
    others = [d for group in groups if group not in radial for d in group]
    parts: list[Kernel] = [of(dims=tuple(names[d] for d in group)) for group in radial]
    if others:
        parts.append(of(dims=tuple(names[d] for d in others), **apart))
    kernel, *more = parts
    for part in more:
        kernel = kernel * part
    return kernel


def repeats(data: Dataset) -> bool:
    """Tell whether a source has points at several places, most of them several times.

    >>> import mrgp
    >>> hours = [[float(i % 3), float(t)] for t in range(9) for i in range(3)]
    >>> x = mrgp.points(hours, inputs=("x", "time"))
    >>> repeats(Dataset([mrgp.Observations(x, range(27))]))
    True
    """
    time = data.clock
    if time is None or len(data.inputs) < 2:
        return False
    return any(_repeats(o.support[o.observed], time) for o in data if any(o.observed))


def _repeats(support: Support, time: int) -> bool:
    beside = [d for d in range(support.dimension) if d != time]
    if not all(support.pointlike[d] and d not in support.solid for d in beside):
        return False
    x = support.centres
    places = len(np.unique(x[:, beside], axis=0))
    return places >= FEWEST_PLACES and len(x) >= FEWEST_TIMES * places


def network_kernel(data: Dataset, geometry: Geometry, rule: Rule = DEFAULT_RULE) -> Kernel:
    """Return the kernel of a network: common, smooth in space, and local terms (theory 12.2).

    What is common changes in time alone; local terms are those of each place, one short and one
    long in time. All are Markov in time.

    >>> import mrgp
    >>> x = mrgp.points([[0.0, 51.0, 1.0], [0.1, 51.0, 5.0]], inputs=("lon", "lat", "time"))
    >>> data = Dataset([mrgp.Observations(x, [3.0, 4.0])])
    >>> len(network_kernel(data, Geometry.of(data.supports)).kernels)
    4
    """
    names, time = geometry.names, data.clock
    if time is None:
        raise ValueError(f"network_kernel: none of the inputs {names} is time.")
    clock, space = names[time], tuple(names[d] for d in _places(geometry, time))
    step, extent = float(geometry.spacing[time]), float(geometry.extent[time])
    short, long = (Matern12(lengthscale, dims=clock) for lengthscale in (3 * step, extent))
    return (
        Matern32(dims=clock)
        + _near(data, geometry, rule, time) * Matern12(dims=clock)
        + White(dims=space) * short
        + White(dims=space) * long
    )


def own_kernel(data: Dataset, geometry: Geometry, rule: Rule = DEFAULT_RULE) -> Kernel:
    """Return the kernel of what a source has of its own, beside the field that it reports.

    Where there are places and times, a part of it stays at its place for all time, and a part
    changes; elsewhere it is the kernel of a field.

    >>> import mrgp
    >>> x = mrgp.points([[0.0, 51.0, 1.0], [0.1, 51.0, 5.0]], inputs=("lon", "lat", "time"))
    >>> data = Dataset([mrgp.Observations(x, [3.0, 4.0])])
    >>> stays, changes = own_kernel(data, Geometry.of(data.supports)).kernels
    >>> stays.dims, [k.dims for k in changes.kernels]
    (('lon', 'lat'), [('lon', 'lat'), ('time',)])
    """
    time = data.clock
    if time is None or not _places(geometry, time):
        return plain_kernel(data, geometry, rule)
    near = _near(data, geometry, rule, time)
    return near + near * Matern12(dims=geometry.names[time])


def _places(geometry: Geometry, time: int) -> list[int]:
    """Return the inputs that say where a place is."""
    known = {time, *geometry.covariates}
    return [d for d in range(len(geometry.names)) if d not in known]


def _near(data: Dataset, geometry: Geometry, rule: Rule, time: int) -> Kernel:
    """Return a kernel of the distance between places, or a product over inputs for many regions."""
    places = _places(geometry, time)
    space = tuple(geometry.names[d] for d in places)
    regions = [_distinct(support, places) for support in data.supports]
    radial = len(places) > 1 and _affordable(places, regions, rule, MOST_NODES_OF_PLACES)
    return Matern12(dims=space, product=not radial and len(space) > 1)


def largest_variance(data: Dataset, geometry: Geometry, spread: float) -> float:
    """Return the most variance that a fit may give a term of the field's kernel.

    It is 100 times what the values imply for the field. A mean over a region as wide as several
    lengthscales has less variance than the field: by the share that a Matern-1/2 of the typical
    lengthscales leaves, for the source whose regions leave most.

    >>> import mrgp
    >>> cells = mrgp.intervals(np.arange(9.0), np.arange(9.0) + 1)
    >>> data = Dataset([mrgp.Observations(cells, np.zeros(9))])
    >>> round(largest_variance(data, Geometry.of(data.supports), 1.0))
    111
    """
    shares = [_share_left(support, geometry) for support in data.supports]
    return LARGEST * spread**2 / max(shares)


def _share_left(support: Support, geometry: Geometry) -> float:
    lower, upper = (np.asarray(bound) for bound in support.bounds)
    widths = (upper - lower) / geometry.typical
    a = np.where(widths > 1e-4, widths, 1.0)
    left = np.where(widths > 1e-4, 2.0 * (np.expm1(-a) + a) / a**2, 1.0)
    return float(np.mean(np.prod(left, 1)))


def _distinct(support: Support, space: Sequence[int]) -> Support:
    """Return one region for each of those that differ in space."""
    sides = np.concatenate([np.asarray(side)[:, list(space)] for side in support.bounds], 1)
    return support[np.sort(np.unique(sides, axis=0, return_index=True)[1])]


def _affordable(
    space: Sequence[int], supports: Sequence[Support], rule: Rule, most: int = MOST_NODES
) -> bool:
    """Tell whether all regions may become nodes along the inputs of a space."""
    wide = [s for s in supports if not all(s.pointlike[d] for d in space)]
    nodes = sum(len(s) * s[:1].atoms(tuple(space), rule).weights.shape[1] for s in supports)
    return not wide or nodes <= most


def linked(kernel: Kernel, leader: Kernel) -> Kernel:
    """Expect the lengthscales of a source near those found for the target.

    Sources of a task see one world. Coarse values alone cannot tell a short lengthscale from
    noise (theory 5.6); the target, where it has more of them, can.

    >>> from mrgp.parameters import fixed
    >>> float(linked(RBF(), RBF(fixed(2.0))).lengthscale.value)
    2.0
    """
    stationary = _stationary(kernel)
    free = [i for i, single in enumerate(stationary) if single.lengthscale is None]
    if not free:
        return kernel
    values = [np.asarray(_stationary(leader)[i].lengthscale.value) for i in free]
    priors = [positive(v, LogNormal(v, np.full(v.shape, LINK_LOG_SD))) for v in values]
    return eqx.tree_at(
        lambda whole: [_stationary(whole)[i].lengthscale for i in free],
        kernel,
        priors,
        is_leaf=lambda x: x is None,
    )


def _stationary(kernel: Kernel) -> list[Stationary]:
    """List the stationary kernels that a kernel is composed of, those of a separable one too."""
    found: list[Stationary] = []
    for single in single_kernels(kernel):
        if isinstance(single, Separable):
            found += [inner for part in single.kernels for inner in _stationary(part)]
        elif isinstance(single, Stationary):
            found.append(single)
    return found
