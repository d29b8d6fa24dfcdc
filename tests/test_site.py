"""The documentation as a site: it builds, opens from the file system, and is read at any width."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from browsing import missing

ROOT = Path(__file__).parents[1]
WIDTHS = (1280, 375)
DOCS = ROOT / "docs"
PAGES = sorted(p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md"))

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the documentation, strictly."""
    if find_spec("mkdocs") is None or find_spec("material") is None:
        missing("mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def opened(browser, site):
    """Open pages of the site as files, without a network; nothing else may be asked for."""
    contexts, asked = [], []

    def show(name, width=1280, height=900):
        context = browser.new_context(viewport={"width": width, "height": height})
        context.set_offline(True)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"file://{site}/{name}.html")
        return page

    yield show
    for context in contexts:
        context.close()
    assert {url.partition(":")[0] for url in asked} <= {"file", "data", "about", "blob"}


def test_the_page_of_every_tutorial_is_there(site):
    made = {p.stem for p in (site / "tutorials").glob("*.html")}
    assert made >= {p.stem for p in (ROOT / "examples").glob("[!_]*.py")}


@pytest.mark.parametrize(
    ("words", "page"),
    [("kriging", "questions.html"), ("Carolina", "gallery.html"), ("extend", "networks.html")],
)
def test_search_works_from_the_file_system(opened, words, page):
    shown = opened("index")
    shown.locator("input.md-search__input").press_sequentially(words)
    shown.wait_for_selector(".md-search-result__link", timeout=20_000)
    found = shown.eval_on_selector_all(".md-search-result__link", "all => all.map(a => a.href)")
    assert any(re.search(rf"/{page}", address) for address in found), found


def test_the_first_screen_has_a_picture_and_three_doors(opened, site):
    shown = opened("index")
    picture = shown.locator("article img").first
    assert picture.evaluate("image => image.naturalWidth") > 600
    box = picture.bounding_box()
    assert box["y"] + box["height"] < 900
    doors = shown.locator(".doors > ul > li")
    assert doors.count() == 3
    assert [d.locator("strong").inner_text() for d in doors.all()] == [
        "I have files",
        "I write Python",
        "I want the mathematics",
    ]
    assert doors.first.bounding_box()["y"] < 900
    tops = {round(door.bounding_box()["y"]) for door in doors.all()}
    assert len(tops) == 1, "side by side where there is room"
    for door in doors.all():
        address = door.locator("a").first.evaluate("a => a.href")
        assert Path(address.removeprefix("file://")).exists()


CUT = """
() => [...document.querySelectorAll("article pre > code")]
  .filter((code) => code.scrollWidth > code.clientWidth + 1)
  .filter((code) => !code.closest(".language-text"))
  .map((code) => code.innerText.slice(0, 80))
"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_no_code_is_cut_and_no_page_is_wider_than_its_screen(opened, name, width):
    shown = opened(name, width=width)
    assert shown.evaluate(CUT) == []
    assert shown.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    # What is printed keeps its columns, and scrolls.
    styles = "all => [...new Set(all.map(code => getComputedStyle(code).overflowX))]"
    assert shown.eval_on_selector_all(".language-text pre > code", styles) in ([], ["auto"])
