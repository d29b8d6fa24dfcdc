"""The messages that the page on troubleshooting quotes are those of the library."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
QUOTED = re.findall(r'^\| "(.+?)" \|', PAGE.partition("## Messages")[2], re.MULTILINE)


def texts_of(tree):
    """Return all strings of a module, with … where a value is put in."""
    inside = {id(part) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in n.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in inside:
            yield str(node.value)


@pytest.fixture(scope="module")
def texts():
    """Return all strings of the library."""
    paths = (ROOT / "src" / "mrgp").rglob("*.py")
    return [text for path in paths for text in texts_of(ast.parse(path.read_text()))]


def test_the_page_quotes_messages():
    assert len(QUOTED) > 12


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_in_the_source(message, texts):
    pattern = re.compile(".*?".join(re.escape(part) for part in message.split("…")), re.DOTALL)
    assert any(pattern.search(text) for text in texts)
