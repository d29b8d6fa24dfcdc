"""Every Python block of the documentation runs, page by page, with warnings as errors."""

import contextlib
import io
import os
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.thorough
@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=lambda p: p.stem
)
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plt.close("all")
    namespace = {}
    for number, block in enumerate(BLOCK.findall(page.read_text())):
        if "MRGP_DATA" in block and "MRGP_DATA" not in os.environ:
            pytest.skip("MRGP_DATA names no folder of recorded data; the blocks before ran")
        code = compile(block, f"{page.name}, block {number + 1}", "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, namespace)
    plt.close("all")


IMAGE = re.compile(r"^!\[(.+?)\]\((images/.+?\.png)\)", re.MULTILINE)
LARGEST_IMAGE = 120_000


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_pictures_of_a_page_are_there_said_in_words_and_small(page):
    for words, image in IMAGE.findall(page.read_text()):
        file = page.parent / image
        assert file.read_bytes()[:4] == b"\x89PNG"
        assert file.stat().st_size < LARGEST_IMAGE, file
        assert len(words) > 20


def test_every_page_is_in_the_menu():
    docs = PAGES[0].parent
    menu = (docs.parent / "mkdocs.yml").read_text()
    listed = set(re.findall(r": ([\w/]+\.md)$", menu, re.MULTILINE))
    assert listed == {p.relative_to(docs).as_posix() for p in docs.rglob("*.md")}


DOORS = ("I have files", "I write Python", "I want the mathematics")


def test_the_first_page_shows_a_picture_and_then_three_doors_before_any_code():
    page = (PAGES[0].parent / "index.md").read_text()
    places = [page.index("![")] + [page.index(f"- **{door}**") for door in DOORS]
    assert places == sorted(places)
    assert places[-1] < page.index("```")


@pytest.mark.parametrize("place", ["London", "South-East US", "North Carolina"])
def test_a_case_of_the_gallery_has_code_a_picture_and_says_whose_the_data_are(place):
    page = (PAGES[0].parent / "gallery.md").read_text()
    case = page.partition(f"\n## {place}")[2].partition("\n## ")[0]
    assert BLOCK.search(case)
    assert IMAGE.search(case)
    assert "Data: " in case


TOOLS = ("kriging", "disaggregation", "inlabru", "GPflow")
REASON = re.compile(r"none: (\S+ ){4,}\S+$")


def answers(part):
    """Return what a question's table has of each tool: a row each, or a column each."""
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    head, rows = lines[0], lines[2:]
    if head[0] == "tool":
        return {row[0].split(" (")[0]: row[1:] for row in rows}
    return {name: [row[i] for row in rows] for i, name in enumerate(head)}


def test_ten_questions_each_have_code_of_every_tool_or_a_reason_why_it_has_none():
    page = (PAGES[0].parent / "questions.md").read_text()
    parts = re.split(r"^## \d+ ", page, flags=re.MULTILINE)[1:]
    assert len(parts) == 10
    for part in parts:
        title = part.partition("\n")[0]
        assert "?" in title
        assert BLOCK.search(part)
        found = answers(part)
        for name in TOOLS:
            assert found[name], (title, name)
            for cell in found[name]:
                # Code of more than a word or a name of what is found there, or a reason.
                said = re.findall(r"`([^`]{4,})`", cell)
                assert said or REASON.match(cell), (title, name, cell)
