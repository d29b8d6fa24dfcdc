"""Diagrams on paper: boxes as large as their text, arrows from edge to edge, plates."""

from typing import Any, NamedTuple

from mrgp.data import Dataset
from mrgp.plotting.diagrams import Box, Diagram, diagram_of, wrapped

TEXT = 8.5
PAD, COLUMN_GAP, ROW_GAP, MARGIN = 0.09, 0.42, 0.3, 0.2
"""In inches, as all lengths here."""

STYLES: dict[str, dict[str, Any]] = {
    "gp": {"facecolor": "white", "edgecolor": "#0072B2", "linewidth": 1.4, "round": True},
    "constant": {"facecolor": "white", "edgecolor": "0.4", "linestyle": "--", "round": True},
    "sum": {"facecolor": "white", "edgecolor": "0.4"},
    "layer": {"facecolor": "white", "edgecolor": "#D55E00", "linewidth": 1.4, "round": True},
    "mixture": {"facecolor": "#DCEBF5", "edgecolor": "#0072B2", "linewidth": 1.4},
    "support": {"facecolor": "#F3F3F3", "edgecolor": "#F3F3F3"},
    "observed": {"facecolor": "0.82", "edgecolor": "black"},
}
WORDS = {
    "gp": "Gaussian process",
    "constant": "constants",
    "sum": "sum",
    "layer": "deep Gaussian process",
    "mixture": "what is predicted",
    "support": "support",
    "observed": "observed",
}


class Placed(NamedTuple):
    """A box on paper: its centre, and its width and height."""

    box: Box
    text: str
    x: float
    y: float
    width: float
    height: float


def plot_diagram(model: Any, data: Dataset) -> Any:
    """Draw a model as it is for a dataset: its parts, and what goes into what; return the figure.

    The parts are those that the recipe makes of the data: latent functions, weights and sums of
    `MRGPRN`, base GPs, layers and mixtures of `MRDGP`, the chain of `Cascade`, and every source
    with its support. Grey boxes are observed.

    >>> import mrgp
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [3.0, 4.0], name="laqn")
    >>> figure = plot_diagram(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> figure.axes[0].get_title(), len(figure.axes[0].texts)
    ('MRGP', 4)
    """
    import matplotlib.pyplot as plt

    found = diagram_of(model, data)
    placed, width, height = placed_on_paper(found)
    figure = plt.figure(figsize=(width, height + 0.75))
    axes = figure.add_axes((0.0, 0.4 / (height + 0.75), 1.0, height / (height + 0.75)))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    axes.set_title(found.title, fontsize=10, y=1.0, pad=2)
    for names, label in found.plates:
        _draw_plate(axes, [placed[name] for name in names], label)
    for item in placed.values():
        _draw_box(axes, item)
    for start, end in found.arrows:
        _draw_arrow(axes, placed[start], placed[end], placed)
    _draw_legend(figure, found)
    return figure


def placed_on_paper(found: Diagram) -> tuple[dict[Any, Placed], float, float]:
    """Return boxes with their places and sizes, and the size of the paper.

    A column is as wide as its widest box, and all rows are as high as the highest.
    """
    texts = {box.name: wrapped(box.text) for box in found.boxes}
    sizes = {name: _size(text) for name, text in texts.items()}
    columns = sorted({box.column for box in found.boxes})
    widths = [max(sizes[b.name][0] for b in found.boxes if b.column == c) for c in columns]
    for box in found.boxes:
        # Plates have one width, and so do the boxes inside.
        if found.plates and box.kind in ("support", "observed"):
            sizes[box.name] = (widths[columns.index(box.column)], sizes[box.name][1])
    middles, x = {}, MARGIN
    for column, width in zip(columns, widths, strict=True):
        middles[column] = x + width / 2
        x += width + COLUMN_GAP
    gap = ROW_GAP + (0.22 if found.plates else 0.0)
    pitch = max(height for _, height in sizes.values()) + gap
    first = min(box.row for box in found.boxes)
    last = max(box.row for box in found.boxes)
    placed = {
        b.name: Placed(
            b,
            texts[b.name],
            middles[b.column],
            MARGIN + (b.row - first + 0.5) * pitch,
            *sizes[b.name],
        )
        for b in found.boxes
    }
    title = 0.085 * len(found.title) + 2 * MARGIN
    return placed, max(x - COLUMN_GAP + MARGIN, title), 2 * MARGIN + (last - first + 1) * pitch


def _size(text: str) -> tuple[float, float]:
    """Return the width and the height of a box about a text."""
    from matplotlib.textpath import TextPath

    lines = text.split("\n")
    widths = [TextPath((0, 0), line, size=TEXT).get_extents().width / 72 for line in lines if line]
    return max(widths) + 2 * PAD, len(lines) * 1.3 * TEXT / 72 + 2 * PAD


def _draw_box(axes: Any, item: Placed) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = dict(STYLES[item.box.kind])
    corner = 0.1 if style.pop("round", False) else 0.0
    shape = f"round,pad=0,rounding_size={corner}" if corner else "square,pad=0"
    corner_x, corner_y = item.x - item.width / 2, item.y - item.height / 2
    axes.add_patch(
        FancyBboxPatch((corner_x, corner_y), item.width, item.height, boxstyle=shape, **style)
    )
    axes.text(item.x, item.y, item.text, ha="center", va="center", fontsize=TEXT, linespacing=1.2)


def _draw_plate(axes: Any, items: list[Placed], label: str) -> None:
    from matplotlib.patches import Rectangle

    margin, below = 0.08, 0.2
    left = min(i.x - i.width / 2 for i in items) - margin
    right = max(i.x + i.width / 2 for i in items) + margin
    top = min(i.y - i.height / 2 for i in items) - margin
    bottom = max(i.y + i.height / 2 for i in items) + below
    edge = {"facecolor": "none", "edgecolor": "0.6", "linewidth": 0.8}
    axes.add_patch(Rectangle((left, top), right - left, bottom - top, **edge))
    place = {"ha": "right", "va": "bottom", "fontsize": TEXT - 1, "color": "0.3"}
    axes.text(right - 0.05, bottom - 0.03, label, **place)


def _draw_arrow(axes: Any, start: Placed, end: Placed, placed: dict[Any, Placed]) -> None:
    """Draw an arrow from edge to edge; past other columns it stays in its row."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    if start.box.column == end.box.column:
        down = 1 if end.y > start.y else -1
        ends = [
            (start.x, start.y + down * start.height / 2),
            (start.x, end.y - down * end.height / 2),
        ]
    else:
        right = 1 if end.x > start.x else -1
        first = (start.x + right * start.width / 2, start.y)
        last = (end.x - right * end.width / 2, end.y)
        ends = [first, last]
        between = [
            p.x + right * p.width / 2
            for p in placed.values()
            if min(start.x, end.x) < p.x < max(start.x, end.x)
            and p.box.column not in (start.box.column, end.box.column)
        ]
        if between and start.y != end.y:
            ends.insert(1, (max(between) if right > 0 else min(between), start.y))
    axes.add_patch(
        FancyArrowPatch(
            path=Path(ends),
            arrowstyle="-|>",
            mutation_scale=9,
            color="0.25",
            linewidth=0.9,
            shrinkA=0,
            shrinkB=0,
        )
    )


def _draw_legend(figure: Any, found: Diagram) -> None:
    from matplotlib.patches import Patch

    handles = []
    for kind in dict.fromkeys(box.kind for box in found.boxes):
        style = {key: value for key, value in STYLES[kind].items() if key != "round"}
        handles.append(Patch(**style, label=WORDS[kind]))
    wide = figure.get_figwidth()
    figure.legend(
        handles=handles,
        loc="lower center",
        ncols=len(handles) if wide > 1.5 * len(handles) else -(-len(handles) // 2),
        frameon=False,
        fontsize=TEXT - 1,
        handlelength=1.6,
        columnspacing=1.2,
    )
