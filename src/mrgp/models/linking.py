"""Which link data ask for, and what a model behind a link starts from (theory 11.1)."""

from typing import Any

import numpy as np

from mrgp.data import Dataset, Scaling, as_seed
from mrgp.gp import Inducing, start_locations
from mrgp.kernels import Kernel, has_white
from mrgp.links import Link, inverse, slope
from mrgp.parameters import Parameter
from mrgp.supports import Rule

FEW, MANY = 150, 300
MOST_NODES = 2000
SPREAD = 0.7
SERVED: dict[str, tuple[Link, ...]] = {
    "real": ("identity", "log", "square"),
    "log": ("log", "square"),
    "probit": ("probit",),
}


def link_of(given: str, data: Dataset) -> Link:
    """Return the link asked for, or that of the data's likelihoods, if all can have it.

    >>> from mrgp import Observations, Poisson, points
    >>> seen = Observations(points([[0.0]]), [3], likelihood=Poisson())
    >>> link_of("auto", Dataset([seen]))
    'log'
    """
    scales = {o.likelihood.scale: o for o in data}
    usual: dict[str, Link] = {"probit": "probit", "log": "log"}
    link: Any = given
    if given == "auto":
        link = next((usual[scale] for scale in usual if scale in scales), "identity")
    for o in data:
        if link not in SERVED[o.likelihood.scale]:
            words = " or ".join(repr(word) for word in SERVED[o.likelihood.scale])
            raise ValueError(
                f"{o.label}: the likelihood {o.likelihood.name!r} goes with link={words}; got"
                f" {link!r}. Leave link= out, or fit the source by itself."
            )
        if o.exposure is not None and link == "identity":
            raise ValueError(
                f"{o.label}: exposure= multiplies a positive field; use"
                ' MRGP(link="log"), or divide the values by it.'
            )
        if link != "identity" and np.any(_weights(o.support) < 0):
            raise ValueError(
                f"{o.label}: regions with negative weights see differences, and a field under"
                f" link={link!r} is positive. Leave such values out."
            )
    return link


def level_of(data: Dataset) -> float:
    """Return the level of a field: what was counted over what could have been (theory 11.1).

    >>> from mrgp import Observations, Poisson, points
    >>> seen = Observations(points([[0.0], [1.0]]), [3, 1], likelihood=Poisson(), exposure=2.0)
    >>> level_of(Dataset([seen]))
    1.0
    """
    counted, possible = 0.0, 0.0
    for o in data.dropna():
        size = np.asarray(o.support.total) * (1.0 if o.exposure is None else o.exposure)
        size = size if o.trials is None else size * o.trials
        counted, possible = counted + float(np.sum(o.y)), possible + float(np.sum(size))
    share = all(o.trials is not None for o in data)
    # Half an event more: nothing was ever seen of what has not happened yet.
    level = max(counted, 0.5) / possible
    return float(np.clip(level, 0.0, 1 - 0.5 / possible)) if share else level


def start_of_field(link: Link, level: float) -> tuple[float, float]:
    """Return where f starts for a field of some level, and how far f may well vary.

    >>> start, spread = start_of_field("log", 1.0)
    >>> start == -0.5 * spread**2  # the mean of exp(f) is 1
    True
    """
    spread = SPREAD * level / slope(link, level)
    return inverse(link, level) - (0.5 * spread**2 if link == "log" else 0.0), spread


def refuse_closed_form(method: str, link: Link, name: str) -> None:
    """Refuse methods that need values of one linear predictor (theory 11.5).

    >>> refuse_closed_form("exact", "log", "MRGP")
    """
    if method in ("collapsed", "markov"):
        raise ValueError(
            f"{name}: method={method!r} has no closed form for link={link!r}; leave method= out."
        )
    if method == "svgp":
        raise ValueError(
            f'{name}: method="svgp" trains on minibatches of Gaussian values, and link={link!r} has'
            " steps on all rows; leave method= out. Much work is then begun on some of the rows."
        )


def linked_locations(
    inducing: Any, data: Dataset, scaling: Scaling, kernel: Kernel, key: Any, every: Rule | None
) -> Parameter:
    """Place inducing inputs: at every node under a rule, as asked for, or fewer than usual."""
    supports = tuple(o.dropna().support.shift(scaling.centre) for o in data)
    if every is not None:
        nodes = [s.quadrature(every) for s in supports]
        found = np.concatenate([np.asarray(n.x)[np.asarray(n.weights) != 0] for n in nodes])
        found = np.unique(found, axis=0)
        if len(found) > MOST_NODES:
            raise ValueError(
                f'MRGP: method="exact" would have an inducing input at each of {len(found)} nodes,'
                f" at most {MOST_NODES}; leave method= out."
            )
        given = Inducing.parse(found + scaling.centre)
    else:
        given = Inducing.parse(inducing)
        if given.number is None and given.locations is None:
            usual = FEW if supports[0].dimension == 1 else MANY
            given = Inducing(usual, given.strategy, given.train)
    return start_locations(given, supports, scaling.centre, kernel, as_seed(key))


def refuse_white(kernel: Kernel, data: Dataset, name: str) -> None:
    """Refuse kernels with White where regions are averaged behind a link."""
    for o in data:
        if has_white(kernel) and not all(
            flat and d not in o.support.solid for d, flat in enumerate(o.support.pointlike)
        ):
            raise ValueError(
                f"{o.label}: {name} cannot have White in the kernel, which has no value inside a"
                " region. Use mrgp.NegativeBinomial() for counts that vary more, or"
                " mrgp.CenterPoint(...)."
            )


def _weights(support: Any) -> Any:
    return np.asarray(support.atoms().weights)
