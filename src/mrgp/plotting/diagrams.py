"""Diagrams of models, from a recipe and a dataset: what there is, and what goes into what."""

import dataclasses
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.inference import recipe_name
from mrgp.models import Recipe, Sketch
from mrgp.plotting.coordinates import with_units
from mrgp.supports import Boxes, Points, Polygons, Support

Kind = Literal["gp", "constant", "sum", "layer", "mixture", "support", "observed"]

LINE = 22
"""Characters in a line of text."""

DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
FORMS = {
    "none": "{}",
    "offset": "c + {}",
    "affine": "c + r × {}",
    "ratio": "r × {}",
    "field": "c + r × {} + a field of its own",
}
"""What sources with each kind of bias report of a field."""

Process = tuple[str, str]
Words = dict[Process, str]
"""What every process reports of the field that it sees."""


class Box(NamedTuple):
    """A part of a model: what it is, in words, and its place in columns and rows."""

    name: Any
    kind: Kind
    text: str
    column: int
    row: float


@dataclasses.dataclass
class Diagram:
    """Boxes by name, arrows between them, and plates: boxes that are repeated, and how often."""

    title: str
    boxes: dict[Any, Box] = dataclasses.field(default_factory=dict)
    arrows: list[tuple[Any, Any]] = dataclasses.field(default_factory=list)
    plates: list[tuple[tuple[Any, ...], str]] = dataclasses.field(default_factory=list)

    def __getitem__(self, name: Any) -> Box:
        return self.boxes[name]

    def add(
        self, name: Any, kind: Kind, text: str, column: int, row: float, after: Iterable[Any] = ()
    ) -> None:
        """Add a box, with arrows to it from others."""
        self.boxes[name] = Box(name, kind, text, column, row)
        self.arrows += [(start, name) for start in after]


def diagram_of(model: Any, data: Dataset) -> Diagram:
    """Return the parts of a model for a dataset, placed, and what goes into what.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [3.0, 4.0], name="laqn")
    >>> for box in diagram_of(mrgp.MRGP(), mrgp.Dataset([sensors])).boxes.values():
    ...     print(box.kind, box.text.splitlines())
    gp ['f', 'GP over x1']
    support ['value at 2 points']
    observed ['laqn', 'value']
    """
    seen = model.view(data) if isinstance(model, Recipe) else data
    sketch = model.sketch(seen) if isinstance(model, Recipe) else None
    forms = {"field": _field, "network": _network, "tree": _tree}
    if sketch is None:
        raise TypeError(
            "plot_diagram draws mrgp.MRGP, VBAgg, MRGPRN, MRDGP, Cascade and CenterPoint of them;"
            f" got {type(model).__name__}."
        )
    centred = model.inner is not None
    words = {o.process: _seen(o.dropna().support, centred) for o in data}
    found = Diagram(recipe_name(model))
    forms[sketch.form](found, sketch, seen, words)
    return found


def _seen(support: Support, centred: bool) -> str:
    """Say what a source reports: values at points or centres, means or sums over regions."""
    count, noun = len(support), _noun(support)
    several = f"{count:,} {noun}" + ("" if count == 1 else "es" if noun == "box" else "s")
    if noun == "point":
        return f"value at {several}"
    return f"value at the centres of {several}" if centred else f"{support.kind} over {several}"


def _noun(support: Support) -> str:
    if isinstance(support, Points):
        return "point"
    if isinstance(support, Boxes):
        return "interval" if support.dimension == 1 else "box"
    shaped = any(isinstance(part, Polygons) for part, _ in support.members)
    return "polygon" if shaped else "region"


def _observed(o: Observations) -> str:
    return f"{o.name}\n{with_units(o.task, o.units)}"


def _add_sources(
    found: Diagram, data: Dataset, rows: dict[Process, float], column: int, words: Words
) -> None:
    """Add support and observations of every source, and the plate about both."""
    for o in data:
        support, observed = ("support", o.process), ("observed", o.process)
        row, count = rows[o.process], int(o.observed.sum())
        found.add(support, "support", words[o.process], column, row)
        found.add(observed, "observed", _observed(o), column + 1, row, [support])
        found.plates.append(((support, observed), f"{count:,} value{'' if count == 1 else 's'}"))


def _field(found: Diagram, sketch: Sketch, data: Dataset, words: Words) -> None:
    """Add one latent field, seen by every source through its support."""
    if len(data.tasks) > 1:
        raise ValueError(
            f"{found.title} models one task, and the data have {data.tasks}. Choose one with"
            " data.select(task=...)."
        )
    form = FORMS[sketch.bias]
    of_target = form.replace("c + r × ", "") if sketch.bias == "field" else "{}"
    words = {p: (of_target if p[0] == sketch.target else form).format(w) for p, w in words.items()}
    rows = {process: float(i) for i, process in enumerate(data.processes)}
    found.add("f", "gp", f"f\n{_over(data)}", 0, 0.5 * (len(rows) - 1))
    found.arrows += [("f", ("support", process)) for process in rows]
    _add_sources(found, data, rows, 1, words)


def _over(data: Dataset) -> str:
    return f"GP over {', '.join(data.inputs)}"


def _network(found: Diagram, sketch: Sketch, data: Dataset, words: Words) -> None:
    """Add latent functions, and for each task its weights and the sum that its sources see."""
    rows: dict[Process, float] = {}
    middles: dict[str, float] = {}
    for task in data.tasks:
        mine = [process for process in data.processes if process[1] == task]
        start = len(rows) + len(middles)
        rows |= {process: start + 1.0 + i for i, process in enumerate(mine)}
        middles[task] = start + 0.5 * (len(mine) + 1)
    count, ends = sketch.latents, list(middles.values())
    latents = [("f", q) for q in range(count)]
    for q, name in enumerate(latents):
        row = 0.5 * (ends[0] - 1 + ends[-1]) - 0.5 * (count - 1) + q
        found.add(name, "gp", f"f{_index(q)}\n{_over(data)}", 0, row)
    kind: Kind = "constant" if sketch.constant else "gp"
    for task, row in middles.items():
        text = f"{task} = {_sum(sketch)}"
        found.add(("W", task), kind, _weights(sketch, task), 1, row - 1)
        found.add(("sum", task), "sum", text, 1, row, [("W", task), *latents])
    found.arrows += [(("sum", process[1]), ("support", process)) for process in rows]
    _add_sources(found, data, rows, 2, words)


def _index(q: int) -> str:
    return str(q + 1).translate(DIGITS)


def _weights(sketch: Sketch, task: str) -> str:
    count = sketch.latents
    names = f"W{_index(0)}" if count == 1 else f"W{_index(0)} … W{_index(count - 1)}"
    kind = "constant" if sketch.constant else "GP"
    return f"weights of {task}\n{names}: {count} {kind}{'' if count == 1 else 's'}"


def _sum(sketch: Sketch) -> str:
    count, form = sketch.latents, "exp(W{0}) f{0}" if sketch.positive else "W{0} f{0}"
    if count <= 3:
        return " + ".join(form.format(_index(q)) for q in range(count))
    return f"{form.format(_index(0))} + … + {form.format(_index(count - 1))}"


def _tree(found: Diagram, sketch: Sketch, data: Dataset, words: Words) -> None:
    """Add base GPs with their data, layers that map one to another, and mixtures."""
    plan = sketch.plan
    pending = list(plan.blends)
    for branch in plan.branches:
        if branch.parent is None:
            text = f"base GP of {branch.process[0]}\nover {', '.join(data.inputs)}"
            bases = sum(box.kind == "gp" for box in found.boxes.values())
            found.add(branch.name, "gp", text, 1, float(bases))
            continue
        while branch.parent not in found.boxes:
            _add_mixture(found, sketch, data, pending.pop(0))
        parent = found[branch.parent]
        beside = f"\nand {', '.join(sketch.beside)}" if sketch.beside else ""
        text = f"deep GP\n{branch.label} → {branch.process[0]}{beside}"
        found.add(branch.name, "layer", text, parent.column + 1, parent.row, [parent.name])
    for blend in pending:
        _add_mixture(found, sketch, data, blend)
    for o in data:
        # The first GP of a process explains its values: its base or, in a chain, its layer.
        first = next(branch for branch in plan.branches if branch.process == o.process)
        text = f"{_observed(o)}\n{words[o.process]}"
        beside = first.parent is None and len(plan.blends[-1].experts) > 1
        gp = found[first.name]
        place = (0, gp.row) if beside else (gp.column, gp.row + 1)
        found.add(("observed", o.process), "observed", text, *place, [first.name])


def _add_mixture(found: Diagram, sketch: Sketch, data: Dataset, blend: Any) -> None:
    """Add the mixture of a task behind its experts."""
    experts = [found[name] for _, name in blend.experts]
    column = max(box.column for box in experts) + 1
    row = float(np.mean([box.row for box in experts]))
    # In a chain over tasks the next layer stands there already.
    while any(b.column == column and abs(b.row - row) < 1 for b in found.boxes.values()):
        row -= 1
    how = f"mixture, by {sketch.mixing}" if len(experts) > 1 else "prediction"
    text = f"{with_units(blend.task, data.units[blend.task])}\n{how}"
    found.add(blend.name, "mixture", text, column, row, [box.name for box in experts])


def wrapped(text: str, width: int = LINE) -> str:
    """Return text with no line longer than a width.

    >>> wrapped("mean over 1,024 polygons", 12).splitlines()
    ['mean over', '1,024', 'polygons']
    """
    lines: Sequence[str] = text.split("\n")
    return "\n".join(part for line in lines for part in textwrap.wrap(line, width) or [""])
