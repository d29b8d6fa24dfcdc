"""What counts, rates and values with limits ask for, and whole numbers that may be counts."""

from typing import Any

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.models import MRGP, MRGPRN
from mrgp.models.linking import link_of

DISPERSED = 2.0
MOSTLY = 0.3
SMALL = 200
FEWEST = 10


def chosen_for_likelihoods(data: Dataset) -> tuple[Any, tuple[str, ...]] | None:
    """Return a recipe and the reasons for it where values are not Gaussian; None where they are.

    >>> from mrgp import Observations, Poisson, points
    >>> seen = Observations(points([[0.0], [1.0]]), [0, 2], likelihood=Poisson(), name="cases")
    >>> recipe, reasons = chosen_for_likelihoods(Dataset([seen]))
    >>> reasons[0]
    'The values of cases are poisson: one field behind a log link.'
    """
    special = [o for o in data if not o.conjugate or o.exposure is not None]
    if not special:
        return None
    if len(data.tasks) > 1:
        return _of_several_tasks(data, special)
    link = link_of("auto", data)
    field = "one field" if link == "identity" else f"one field behind a {link} link"
    reasons = [f"The values of {o.name} are {o.likelihood.name}: {field}." for o in special]
    reasons += [said for o in special for said in _told(o)]
    first, *others = data.sources
    if not others or link not in ("log", "square"):
        return MRGP(), tuple(reasons)
    reasons.append(f"Sources other than {first} may report a multiple of the field.")
    return MRGP(bias="ratio"), tuple(reasons)


def _of_several_tasks(data: Dataset, special: list[Observations]) -> tuple[Any, tuple[str, ...]]:
    """Return constant weights behind the link that all tasks have, or say that they have none."""
    scales = {o.likelihood.scale: o for o in data}
    if "real" in scales or len(scales) > 1:
        one, *others = sorted(data, key=lambda o: o.process != special[0].process)
        scale = one.likelihood.scale
        other = next((o for o in others if o.likelihood.scale != scale), others[0])
        raise ValueError(
            f"choose: {one.label} is {one.likelihood.name}, {other.label} is"
            f" {other.likelihood.name}, and no model of several tasks takes both: these are behind"
            " one link. Choose for one task at a time, data.select(task=...)."
        )
    link, count = link_of("auto", data), len(data.tasks)
    recipe = MRGPRN(kernel_w="constant")
    reasons = [f"The values of {o.name}, {o.task}, are {o.likelihood.name}." for o in special]
    reasons += [said for o in special for said in _told(o)]
    reasons.append(
        f"The {count} tasks are mixtures of {recipe.latents_of(data)} latent functions behind a"
        f" {link} link, in proportions that do not change: what one task shows of them holds for"
        " the others."
    )
    if len(data) > count:
        reasons.append("Sources of a task are taken to report the same field, without a ratio.")
    return recipe, tuple(reasons)


def may_be_counts(data: Dataset) -> tuple[str, ...]:
    """Say which Gaussian sources have small whole numbers alone, which are likely to be counts.

    >>> from mrgp import Observations, points
    >>> may_be_counts(Dataset([Observations(points([[0.0], [1.0]]), [0.0, 2.5])]))
    ()
    """
    found = []
    for o in data:
        y = o.y[o.observed]
        whole = np.all(y == np.round(y)) and y.min() >= 0 and y.max() <= SMALL and np.ptp(y) > 0
        if o.likelihood.name == "gaussian" and whole and len(y) >= FEWEST:
            found.append(
                f"The values of {o.name} are whole numbers, none negative: where they are counts,"
                " give the source likelihood=mrgp.Poisson(), with exposure= where there is one."
            )
    return tuple(found)


def _told(o: Observations) -> list[str]:
    """Say whether counts vary more than Poisson's about one rate, and how many are zero."""
    if o.likelihood.domain != "count":
        return []
    seen = o.dropna()
    size = np.asarray(seen.support.total) * (1.0 if seen.exposure is None else seen.exposure)
    expected = size * max(seen.y.sum(), 0.5) / size.sum()
    ratio = float(np.mean((seen.y - expected) ** 2 / expected))
    zeros, unlikely = float(np.mean(seen.y == 0)), float(np.mean(np.exp(-expected)))
    said = []
    if ratio > DISPERSED:
        advice = "" if o.likelihood.name != "poisson" else "; compare mrgp.NegativeBinomial()"
        said.append(
            f"Counts of {o.name} vary {ratio:.1f} times as much as with one rate for all, by the"
            f" field or beyond it{advice}."
        )
    if zeros > MOSTLY:
        said.append(f"{zeros:.0%} of {o.name} are zero, where one rate would have {unlikely:.0%}.")
    return said
