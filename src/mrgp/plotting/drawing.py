"""Diagrams on paper: boxes as large as their text, arrows from edge to edge, plates."""

from typing import Any, NamedTuple

from mrgp.data import Dataset
from mrgp.plotting.diagrams import Box, Diagram, diagram_of, wrapped

TEXT = 8.5
PAD, COLUMN_GAP, ROW_GAP, MARGIN = 0.09, 0.42, 0.3, 0.2
"""In inches, as all lengths here."""

LATENT = {"facecolor": "white", "linewidth": 1.4}
STYLES: dict[str, dict[str, Any]] = {
    "gp": {"label": "Gaussian process", "edgecolor": "#0072B2"} | LATENT,
    "constant": {"label": "constants", "edgecolor": "0.4", "facecolor": "white", "linestyle": "--"},
    "sum": {"label": "sum", "edgecolor": "0.4", "facecolor": "white"},
    "layer": {"label": "deep Gaussian process", "edgecolor": "#D55E00"} | LATENT,
    "mixture": {"label": "what is predicted", "edgecolor": "#0072B2"}
    | {"facecolor": "#DCEBF5", "linewidth": 1.4},
    "support": {"label": "support", "edgecolor": "#F3F3F3", "facecolor": "#F3F3F3"},
    "observed": {"label": "observed", "edgecolor": "black", "facecolor": "0.82"},
}
ROUND = ("gp", "constant", "layer")
"""What is not known has round corners."""


class Placed(NamedTuple):
    """A box on paper: its centre, and its width and height."""

    box: Box
    x: float
    y: float
    width: float
    height: float

    def edge(self, right: int, down: int) -> tuple[float, float]:
        """Return the middle of an edge, or a corner: -1 is left or up, 1 is right or down."""
        return self.x + right * self.width / 2, self.y + down * self.height / 2


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
    boxes = [box._replace(text=wrapped(box.text)) for box in found.boxes.values()]
    sizes = {box.name: _size(box.text) for box in boxes}
    middles, widths, x = {}, {}, MARGIN
    for column in sorted({box.column for box in boxes}):
        widths[column] = max(sizes[b.name][0] for b in boxes if b.column == column)
        middles[column] = x + widths[column] / 2
        x += widths[column] + COLUMN_GAP
    gap = ROW_GAP + (0.22 if found.plates else 0.0)
    pitch = max(height for _, height in sizes.values()) + gap
    first, last = (end(box.row for box in boxes) for end in (min, max))
    placed = {}
    for b in boxes:
        width, height = sizes[b.name]
        # Plates have one width, and so do the boxes inside.
        if found.plates and b.kind in ("support", "observed"):
            width = widths[b.column]
        y = MARGIN + (b.row - first + 0.5) * pitch
        placed[b.name] = Placed(b, middles[b.column], y, width, height)
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

    kind, corner = item.box.kind, item.edge(-1, -1)
    shape = "round,pad=0,rounding_size=0.1" if kind in ROUND else "square,pad=0"
    axes.add_patch(FancyBboxPatch(corner, item.width, item.height, boxstyle=shape, **STYLES[kind]))
    middle = {"ha": "center", "va": "center"}
    axes.text(item.x, item.y, item.box.text, fontsize=TEXT, linespacing=1.2, **middle)


def _draw_plate(axes: Any, items: list[Placed], label: str) -> None:
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import Bbox

    about = Bbox.union([Bbox([item.edge(-1, -1), item.edge(1, 1)]) for item in items])
    left, top, right, bottom = about.padded(0.08).extents
    # Below is room for the label.
    bottom += 0.12
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
        way = [start.edge(0, down), end.edge(0, -down)]
    else:
        right = 1 if end.x > start.x else -1
        way = [start.edge(right, 0), end.edge(-right, 0)]
        low, high = sorted((start.x, end.x))
        between = [p.edge(right, 0)[0] for p in placed.values() if low < p.x < high]
        if between and start.y != end.y:
            way.insert(1, (max(between) if right > 0 else min(between), start.y))
    style = {"arrowstyle": "-|>", "mutation_scale": 9, "color": "0.25", "linewidth": 0.9}
    axes.add_patch(FancyArrowPatch(path=Path(way), shrinkA=0, shrinkB=0, **style))


def _draw_legend(figure: Any, found: Diagram) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(**STYLES[kind]) for kind in {box.kind: None for box in found.boxes.values()}]
    count, room = len(handles), figure.get_figwidth()
    columns = count if room > 1.5 * count else -(-count // 2)
    style = {"frameon": False, "fontsize": TEXT - 1, "handlelength": 1.6, "columnspacing": 1.2}
    figure.legend(handles=handles, loc="lower center", ncols=columns, **style)
