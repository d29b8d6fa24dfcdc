"""Comments cite `theory n.m`; the pages link to its sections. Both must be there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTIONS = set(
    re.findall(r"^##+ (\d+(?:\.\d+)?) ", (ROOT / "docs" / "theory.md").read_text(), re.MULTILINE)
)
CITED = re.compile(r"\b[Tt]heory((?:,? (?:and )?\d+(?:\.\d+)?)+)")
PLACES = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "tests").rglob("*.py"),
    *(ROOT / "benchmarks").rglob("*.py"),
    *(ROOT / "examples").glob("*.py"),
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "CONTRIBUTING.md",
]


def cited(text):
    return [number for run in CITED.findall(text) for number in re.findall(r"\d+(?:\.\d+)?", run)]


def test_citations_are_found_in_text():
    assert cited("see theory 1.4, 2.2 and 3; Theory 5.6 too") == ["1.4", "2.2", "3", "5.6"]
    assert cited("in theory this holds 3 times") == []


def test_the_theory_has_sections():
    assert {"1", "1.4", "2.2", "8"} <= SECTIONS


@pytest.mark.parametrize("path", PLACES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_section_that_is_cited_exists(path):
    missing = [n for n in cited(path.read_text()) if n not in SECTIONS]
    assert path == Path(__file__) or not missing
