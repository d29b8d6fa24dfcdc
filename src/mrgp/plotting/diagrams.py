"""Diagrams of models, from a recipe and a dataset: what there is, and what goes into what."""

import dataclasses
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from mrgp.data import Dataset, Observations
from mrgp.models import MRGP, MRGPRN, CenterPoint, VBAgg
from mrgp.plotting.functions import quantity
from mrgp.supports import Boxes, Points, Polygons, Products, Support

Kind = Literal["gp", "constant", "sum", "layer", "mixture", "support", "observed"]

LINE = 22
"""Characters in a line of text."""

DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
Process = tuple[str, str]


class Box(NamedTuple):
    """A part of a model: what it is, in words, and its place in columns and rows."""

    name: Any
    kind: Kind
    text: str
    column: float
    row: float


@dataclasses.dataclass(frozen=True)
class Diagram:
    """Boxes, arrows between them by name, and plates: boxes that are repeated, and how often."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[tuple[Any, Any], ...]
    plates: tuple[tuple[tuple[Any, ...], str], ...] = ()

    def __getitem__(self, name: Any) -> Box:
        return next(box for box in self.boxes if box.name == name)


def diagram_of(model: Any, data: Dataset) -> Diagram:
    """Return the parts of a model for a dataset, placed, and what goes into what.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [3.0, 4.0], name="laqn")
    >>> for box in diagram_of(mrgp.MRGP(), mrgp.Dataset([sensors])).boxes:
    ...     print(box.kind, box.text.splitlines())
    gp ['f', 'GP over x1']
    support ['value at 2 points']
    observed ['laqn', 'value']
    """
    words = {o.process: _seen(o.dropna().support) for o in data}
    inner, title = model, type(model).__name__
    while isinstance(inner, CenterPoint):
        words = {o.process: _centred(o.dropna().support) for o in data}
        inner = inner.model
        title = f"{title}({type(inner).__name__})"
    if isinstance(inner, MRGP | VBAgg):
        return _field(inner, model.view(data), words, title)
    if isinstance(inner, MRGPRN):
        return _network(inner, model.view(data), words, title)
    if hasattr(inner, "plan"):
        return _tree(inner, model.view(data), words, title)
    raise TypeError(
        "plot_diagram draws mrgp.MRGP, VBAgg, MRGPRN, MRDGP, Cascade and CenterPoint of them; got"
        f" {type(inner).__name__}."
    )


def _seen(support: Support) -> str:
    """Say what a source reports: values at points, means or sums over regions."""
    if isinstance(support, Points):
        return f"value at {_several(support)}"
    return f"{support.kind} over {_several(support)}"


def _several(support: Support) -> str:
    count, noun = len(support), _noun(support)
    return f"{count:,} {noun if count == 1 else {'box': 'boxes'}.get(noun, noun + 's')}"


def _centred(support: Support) -> str:
    if isinstance(support, Points):
        return _seen(support)
    return f"value at the centres of {_several(support)}"


def _noun(support: Support) -> str:
    if isinstance(support, Points):
        return "point"
    if isinstance(support, Boxes):
        return "interval" if support.dimension == 1 else "box"
    parts = support.parts if isinstance(support, Products) else (support,)
    return "polygon" if any(isinstance(part, Polygons) for part in parts) else "region"


def _observed(o: Observations) -> str:
    return f"{o.name}\n{quantity(o.task, o.units)}"


def _sources(
    data: Dataset, rows: dict[Process, float], column: int, words: dict[Process, str]
) -> tuple[list[Box], list[tuple[Any, Any]], list[tuple[tuple[Any, ...], str]]]:
    """Return support and observations of every source, and the plate about both."""
    boxes: list[Box] = []
    arrows, plates = [], []
    for o in data:
        support, observed = ("support", o.process), ("observed", o.process)
        boxes.append(Box(support, "support", words[o.process], column, rows[o.process]))
        boxes.append(Box(observed, "observed", _observed(o), column + 1, rows[o.process]))
        arrows.append((support, observed))
        plates.append(((support, observed), _count(o)))
    return boxes, arrows, plates


def _count(o: Observations) -> str:
    count = int(o.observed.sum())
    return f"{count:,} value{'' if count == 1 else 's'}"


def _field(model: Any, data: Dataset, words: dict[Process, str], title: str) -> Diagram:
    """One latent field, seen by every source through its support."""
    if len(data.tasks) > 1:
        raise ValueError(
            f"{type(model).__name__} models one task, and the data have {data.tasks}. Choose one"
            " with data.select(task=...)."
        )
    rows = {process: float(i) for i, process in enumerate(data.processes)}
    bias = getattr(model, "bias", "none")
    if bias != "none":
        target, form = model.target_of(data), {"offset": "c + {}", "affine": "c + r × {}"}[bias]
        words = {p: form.format(w) if p[0] != target else w for p, w in words.items()}
    boxes, arrows, plates = _sources(data, rows, 1, words)
    middle = 0.5 * (len(rows) - 1)
    latent = Box("f", "gp", f"f\n{_over(data)}", 0, middle)
    ways = [("f", ("support", process)) for process in rows]
    return Diagram(title, (latent, *boxes), (*ways, *arrows), tuple(plates))


def _over(data: Dataset) -> str:
    return f"GP over {', '.join(data.inputs)}"


def _network(model: MRGPRN, data: Dataset, words: dict[Process, str], title: str) -> Diagram:
    """Latent functions, and for each task its weights and the sum that its sources see."""
    count, constant = model.latents_of(data), model.kernel_w == "constant"
    boxes: list[Box] = []
    arrows: list[tuple[Any, Any]] = []
    rows: dict[Process, float] = {}
    start = 0.0
    for task in data.tasks:
        mine = [process for process in data.processes if process[1] == task]
        rows |= {process: start + 1 + i for i, process in enumerate(mine)}
        at = start + 0.5 * (len(mine) + 1)
        boxes.append(
            Box(
                ("W", task),
                "constant" if constant else "gp",
                _weights(model, task, count),
                1,
                at - 1,
            )
        )
        boxes.append(Box(("sum", task), "sum", f"{task} = {_sum(model, count)}", 1, at))
        arrows.append((("W", task), ("sum", task)))
        arrows += [(("f", q), ("sum", task)) for q in range(count)]
        arrows += [(("sum", task), ("support", process)) for process in mine]
        start += len(mine) + 1
    middle = 0.5 * (min(b.row for b in boxes) + max(b.row for b in boxes)) - 0.5 * (count - 1)
    latent = [
        Box(("f", q), "gp", f"f{_index(q)}\n{_over(data)}", 0, middle + q) for q in range(count)
    ]
    more, ways, plates = _sources(data, rows, 2, words)
    return Diagram(title, (*latent, *boxes, *more), (*arrows, *ways), tuple(plates))


def _index(q: int) -> str:
    return str(q + 1).translate(DIGITS)


def _weights(model: MRGPRN, task: str, count: int) -> str:
    names = f"W{_index(0)}" if count == 1 else f"W{_index(0)} … W{_index(count - 1)}"
    kind = "constant" if model.kernel_w == "constant" else "GP"
    return f"weights of {task}\n{names}: {count} {kind}{'' if count == 1 else 's'}"


def _sum(model: MRGPRN, count: int) -> str:
    form = "exp(W{0}) f{0}" if model.positive else "W{0} f{0}"
    if count <= 3:
        return " + ".join(form.format(_index(q)) for q in range(count))
    return f"{form.format(_index(0))} + … + {form.format(_index(count - 1))}"


def _tree(model: Any, data: Dataset, words: dict[Process, str], title: str) -> Diagram:
    """Base GPs with their data, layers that map one to another, and mixtures."""
    plan = model.plan(data)
    depth: dict[str, int] = {}
    row: dict[str, float] = {}
    boxes: list[Box] = []
    arrows: list[tuple[Any, Any]] = []
    pending = list(plan.blends)
    for node in plan.nodes:
        while node.parent is not None and node.parent not in depth:
            _mix(model, data, pending.pop(0), depth, row, boxes, arrows)
        depth[node.name] = 1 if node.parent is None else depth[node.parent] + 1
        if node.parent is None:
            row[node.name] = float(_bases(boxes))
            text = f"base GP of {node.process[0]}\nover {', '.join(data.inputs)}"
            boxes.append(Box(node.name, "gp", text, 1, row[node.name]))
        else:
            row[node.name] = row[node.parent]
            arrows.append((node.parent, node.name))
            place = depth[node.name], row[node.name]
            boxes.append(Box(node.name, "layer", _layer(model, node), *place))
    for blend in pending:
        _mix(model, data, blend, depth, row, boxes, arrows)
    for o in data:
        # The first GP of a process explains its values: its base or, in a chain, its layer.
        first = next(node for node in plan.nodes if node.process == o.process)
        text = f"{_observed(o)}\n{words[o.process]}"
        beside = first.parent is None and len(plan.blends[-1].experts) > 1
        place = (0.0, row[first.name]) if beside else (depth[first.name], row[first.name] + 1)
        boxes.append(Box(("observed", o.process), "observed", text, *place))
        arrows.append((first.name, ("observed", o.process)))
    return Diagram(title, tuple(boxes), tuple(arrows))


def _bases(boxes: Iterable[Box]) -> int:
    return sum(box.kind == "gp" for box in boxes)


def _layer(model: Any, node: Any) -> str:
    beside = f"\nand {', '.join(model.deep_inputs)}" if model.deep_inputs else ""
    return f"deep GP\n{node.label} → {node.process[0]}{beside}"


def _mix(
    model: Any,
    data: Dataset,
    blend: Any,
    depth: dict[str, int],
    row: dict[str, float],
    boxes: list[Box],
    arrows: list[tuple[Any, Any]],
) -> None:
    """Place the mixture of a task behind its experts."""
    nodes = [name for _, name in blend.experts]
    depth[blend.name] = max(depth[name] for name in nodes) + 1
    row[blend.name] = float(np.mean([row[name] for name in nodes]))
    # In a chain over tasks the next layer stands there already.
    while any(b.column == depth[blend.name] and abs(b.row - row[blend.name]) < 1 for b in boxes):
        row[blend.name] -= 1
    rule = "a function of x" if callable(model.mixing) else model.mixing
    how = f"mixture, by {rule}" if len(nodes) > 1 else "prediction"
    text = f"{quantity(blend.task, data.units[blend.task])}\n{how}"
    boxes.append(Box(blend.name, "mixture", text, depth[blend.name], row[blend.name]))
    arrows += [(name, blend.name) for name in nodes]


def wrapped(text: str, width: int = LINE) -> str:
    """Return text with no line longer than a width.

    >>> wrapped("mean over 1,024 polygons", 12).splitlines()
    ['mean over', '1,024', 'polygons']
    """
    lines: Sequence[str] = text.split("\n")
    return "\n".join(part for line in lines for part in textwrap.wrap(line, width) or [""])
