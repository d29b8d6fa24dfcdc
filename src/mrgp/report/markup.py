"""Pieces of HTML, with all text escaped, and of sentences."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

NUMBER = ' class="number"'
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COLUMN, ROW = 'th scope="col"', 'th scope="row"'


def table(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]], *, tall: bool = False
) -> str:
    """Return a table; numbers are written with four digits, and stand to the right.

    A `tall` one scrolls within itself.

    >>> table("Sizes", ["name", "n"], [["<a>", 3]]).splitlines()[1]
    '<table><caption>Sizes</caption>'
    """
    right = [any(_is_number(row[i]) for row in rows) for i in range(len(header))]
    head = "".join(_cell(COLUMN, *pair) for pair in zip(header, right, strict=True))
    kind = "wide tall" if tall else "wide"
    lines = [f'<div class="{kind}" tabindex="0" role="group" aria-label="{escape(caption)}">']
    lines.append(f"<table><caption>{escape(caption)}</caption>")
    lines.append(f"<thead><tr>{head}</tr></thead><tbody>")
    for first, *others in rows:
        cells = "".join(_cell("td", value, _is_number(value)) for value in others)
        lines.append(f"<tr>{_cell(ROW, first, False)}{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _cell(tag: str, value: Any, right: bool) -> str:
    """Return a cell, whose tag may have a scope; numbers stand to the right."""
    return f"<{tag}{NUMBER if right else ''}>{escape(text(value))}</{tag[:2]}>"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number)


def text(value: Any) -> str:
    """Return a value in words: numbers with four digits, nothing as a dash."""
    if value is None:
        return "–"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return "–" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def paragraph(words: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(words)}</p>"


def listing(items: Sequence[str]) -> str:
    """Return a list of sentences."""
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def lines(words: str) -> str:
    """Return text whose lines stay as they are."""
    return f"<pre>{escape(words)}</pre>"


def heading(level: int, words: str) -> str:
    """Return a heading."""
    return f"<h{level}>{escape(words)}</h{level}>"


def section(name: str, title: str, body: str) -> str:
    """Return a section of the page, to which links lead by its name."""
    head = f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(title)}</h2>'
    return f"{head}\n{body}\n</section>"


def chart(name: str, label: str) -> str:
    """Return the place of a drawing, with words for those who do not see it."""
    return f'<div class="chart" id="{escape(name)}" role="img" aria-label="{escape(label)}"></div>'


def joined(words: Sequence[str]) -> str:
    """Return words in a row: "a, b and c".

    >>> joined(["a", "b", "c"]), joined(["a"])
    ('a, b and c', 'a')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, small ones in words.

    >>> counted(2, "task"), counted(1, "task"), counted(1200, "value")
    ('two tasks', 'one task', '1,200 values')
    """
    number = NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"
    return f"{number} {noun}{'' if count == 1 else 's'}"
