"""Every Python block of the documentation runs, page by page, with warnings as errors."""

import contextlib
import io
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
