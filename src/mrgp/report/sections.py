"""The sections of a page in words and tables: data, model, checks."""

import re
from typing import Any

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.inference import Fit
from mrgp.parameters import at_limit
from mrgp.report.checks import FEW, Check
from mrgp.report.layout import Layout, written
from mrgp.report.markup import chart, heading, lines, listing, paragraph, table
from mrgp.supports import Nodes, Points, Polygons, Products

UNITS = "Lengths over places on Earth are in km, over time in the unit shown."
RECIPES = {
    "MRGP": "One field, seen by every source through its own support: points, cells, windows.",
    "VBAgg": "One field, seen by every source through its own support, by variational bounds.",
    "MRGPRN": "Several tasks as mixtures of latent functions, each seen through its own support.",
    "MRDGP": "A map from every source to the target is learned, and what they say is mixed.",
    "Cascade": "Each source is mapped to the next finer one; the last one predicts.",
    "CenterPoint": "Every region is taken for its centre; this is a baseline.",
    "Dependent": "A source that averages the values of another shares their errors.",
}
KERNELS = ("kernel", "kernel_f", "kernel_w", "kernel_base", "kernel_deep")
SCORES = ("n", "rmse", "mae", "crps", "nlpd", "coverage_50", "coverage_80", "coverage_95")
SCORES += ("width_95",)
WORDS = {
    "coverage_50": "in 50 %",
    "coverage_80": "in 80 %",
    "coverage_95": "in 95 %",
    "width_95": "width of 95 %",
}


def data_section(fit: Fit, data: Dataset | None, layout: Layout) -> str:
    """Tell what was fitted: values, supports, ranges and extents."""
    if data is None:
        rows = [[s, t, used, missing, fit.units.get(t)] for (s, t), (used, missing) in _counts(fit)]
        said = "The fit does not keep its data, so that their ranges and extents are not known."
        header = ["source", "task", "values", "missing", "units"]
        return paragraph(said) + table("Sources", header, rows)
    rows = [_about(observed, fit) for observed in data]
    header = ["source", "task", "support", "values", "missing", "units", "least", "mean", "most"]
    extents = [[o.name, o.task, *_extents(o, layout)] for o in data]
    names = [layout.label(d) for d in range(len(layout.names))]
    return table("Sources", header, rows) + table("Extent", ["source", "task", *names], extents)


def _counts(fit: Fit) -> list[tuple[tuple[str, str], tuple[int, int]]]:
    return list(fit.counts.items())


def _about(observed: Observations, fit: Fit) -> list[Any]:
    seen, (used, missing) = observed.dropna().y, fit.counts[observed.process]
    ends = [float(seen.min()), float(seen.mean()), float(seen.max())]
    units = observed.units or fit.units.get(observed.task)
    return [observed.name, observed.task, support_words(observed), used, missing, units, *ends]


def support_words(observed: Observations) -> str:
    """Say in a word or two what the regions of a source are.

    >>> import mrgp
    >>> support_words(mrgp.Observations(mrgp.intervals([0.0], [1.0]), [3.0]))
    'means over cells'
    """
    support = observed.support
    if isinstance(support, Points):
        return "points"
    parts = support.parts if isinstance(support, Products) else (support,)
    what = "cells"
    if any(isinstance(part, Polygons) for part in parts):
        what = "polygons"
    elif any(isinstance(part, Nodes) for part in parts):
        what = "weighted nodes"
    return f"{support.kind}s over {what}"


def _extents(observed: Observations, layout: Layout) -> list[str]:
    lower, upper = (np.asarray(bound) for bound in observed.support.bounds)
    found = []
    for d in range(len(layout.names)):
        axis = None if observed.support.axes is None else observed.support.axes[d]
        ends = np.array([lower[:, d].min(), upper[:, d].max()])
        first, last = written(ends, axis or layout.axes[d])
        if isinstance(first, str):
            found.append(f"{first} to {last}")
        else:
            found.append(f"{first:.6g} to {last:.6g}")
    return found


def model_section(fit: Fit, layout: Layout) -> str:
    """Tell the recipe, why it was chosen, how training went, and what was found."""
    parts = [paragraph(recipe_words(fit))]
    if fit.reasons:
        parts += [heading(3, "Why this model"), listing(fit.reasons)]
    parts += [heading(3, "How training went"), listing(_training(fit))]
    parts += [
        heading(3, "Parameters"),
        paragraph(UNITS),
    ]
    rows = [_parameter(fit, layout, name, value) for name, value in fit.parameters().items()]
    return "\n".join([*parts, table("Parameters", ["name", "value", "units", "remark"], rows)])


def recipe_words(fit: Fit) -> str:
    """Return the recipe of a fit in words."""
    recipe, said = fit.recipe, []
    while recipe is not None:
        name = type(recipe).__name__
        said.append(f"{name}: {RECIPES.get(name, 'a model of its own.')}")
        given = {name: getattr(recipe, name, None) for name in KERNELS}
        said += [f"{name}: {_flat(value)}." for name, value in given.items() if value is not None]
        if getattr(recipe, "bias", "none") != "none":
            said.append(f"Sources other than the target have a bias: {recipe.bias}.")
        recipe = getattr(recipe, "model", None)
    return " ".join(said)


def _flat(value: Any) -> str:
    """Return a recipe's setting in one line."""
    return re.sub(r"\( | (?=\))", lambda found: found[0].strip(), " ".join(str(value).split()))


def _training(fit: Fit) -> list[str]:
    found = [str(fit.status)]
    if len(fit.history):
        found.append(f"log evidence or bound, with log prior: {fit.history[-1]:.3f}")
    found.append(f"optimiser: {type(fit.optimiser).__name__}")
    found.append(str(fit.model.account(fit.state)))
    if fit.treatment == "keep":
        found.append("parameters are those of each source on its own")
    if fit.treatment == "adjusted":
        found.append("the posterior was widened by adjust_curvature")
    return found


def _parameter(fit: Fit, layout: Layout, name: str, value: Any) -> list[Any]:
    known = fit.model.named().get(name)
    remark = ""
    if known is not None:
        remark = "fixed" if not known.trainable else "at its limit" if at_limit(known) else ""
    numbers = [float(v) for v in np.ravel(value)]
    shown: Any = numbers[0] if len(numbers) == 1 else ", ".join(f"{v:.4g}" for v in numbers)
    return [name, shown, _units(fit, layout, name, len(numbers)), remark]


def _units(fit: Fit, layout: Layout, name: str, count: int) -> str | None:
    """Return the units of a parameter, where they are known for sure."""
    if name.startswith("expert["):
        return None
    if name.endswith("lengthscale"):
        seen = re.search(r"\(([^()]*)\)\.lengthscale$", name)
        wanted = seen[1].split(", ") if seen else list(fit.inputs)
        known = dict(zip(fit.inputs, layout.axes, strict=False))
        axes = [known.get(n) for n in wanted]
        units = [axis.unit if axis else None for axis in axes]
        if len(set(units)) == 1:
            return units[0]
        return ", ".join(str(u or "–") for u in units) if count == len(units) else None
    own = set(fit.units.values())
    unit = next(iter(own)) if len(own) == 1 else None
    squares = ("kernel.variance", "noise_variance")
    if unit and (name.endswith(squares) or name.startswith("noise_variance")):
        return f"({unit})²"
    level = name.startswith("offset[") or name.endswith("mean.constant")
    return unit if unit and level else None


def checks_section(found: list[Check]) -> str:
    """Tell the scores, and place the drawings of calibration."""
    if not found:
        return paragraph(
            "There are no scores: the fit does not keep its data, and no others were given."
            " `mrgp report FIT --data FILE` scores values that were held out."
        )
    parts = []
    for i, check in enumerate(found):
        parts += [heading(3, check.title), paragraph(check.words)]
        header = ["source", "task", *(WORDS.get(name, name) for name in SCORES)]
        rows = [[*process, *(s[name] for name in SCORES)] for process, s in check.scores.items()]
        parts.append(table(f"Scores: {check.title.lower()}", header, rows))
        parts.append(
            paragraph(
                "Lower rmse, mae, crps and nlpd are better; the shares of values inside the 50, 80"
                " and 95 % intervals should be 0.5, 0.8 and 0.95."
            )
        )
        if any(len(values) < FEW for values in check.pit.values()):
            parts.append(paragraph(f"Where there are fewer than {FEW} values, shares say little."))
        parts.append(
            '<div class="pair">'
            + chart(f"coverage-{i}", f"Share of values inside intervals, {check.title.lower()}")
            + chart(f"pit-{i}", f"Probability integral transform, {check.title.lower()}")
            + "</div>"
        )
        if check.remarks:
            parts += [heading(4, "What the residuals say"), lines(check.remarks)]
    return "\n".join(parts)
