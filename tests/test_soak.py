"""What the soak tries: its page names every hostile set, and its inputs come again by seed."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "tried.md").read_text()


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """Scripts of a folder see one another."""
    monkeypatch.syspath_prepend(str(ROOT / "soak"))
    yield
    for name in ("outcomes", "readers", "hostile", "run"):
        sys.modules.pop(name, None)


def test_the_page_names_every_hostile_set():
    import hostile

    assert len(hostile.SETS) >= 36
    for name in hostile.SETS:
        assert name in PAGE


def test_damaged_inputs_come_again_by_their_seed():
    import readers

    content = b"a,b\n" + b"1.5,2.5\n" * 20
    first, again = (
        [readers.mutated(content, np.random.default_rng([7, k])) for k in range(50)] for _ in "ab"
    )
    assert first == again
    assert sum(one != content for one in first) > 40


def test_figures_take_the_place_of_older_ones(tmp_path, monkeypatch):
    import run

    page = tmp_path / "page.md"
    page.write_text(f"a\n{run.BEGIN.format('soak')}\nold\n{run.END.format('soak')}\nb\n")
    monkeypatch.setattr(run, "PAGE", page)
    run.write("soak", "new\n")
    assert page.read_text().splitlines()[3] == "new"
    assert "old" not in page.read_text()
    assert page.read_text().count("figures: soak") == 2
    assert page.read_text().endswith("b\n")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["csv", "configuration", "saved fit"])
def test_a_few_damaged_files_end_in_an_answer_or_a_sentence(kind, tmp_path):
    import readers

    tried = readers.try_kind(kind, 15, 3, tmp_path)
    assert tried.wrong == []
    assert tried.inputs == 15
