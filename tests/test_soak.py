"""What the soak tries: its page names every hostile set, and its inputs come again by seed."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from groups import rest_thorough

ROOT = Path(__file__).parents[1]
NAMES = ("outcomes", "readers", "bombs", "hostile", "run", "rows", "page", "judging", "kills")
NAMES += ("machine", "writers")
PAGE = (ROOT / "docs" / "tried.md").read_text()


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """Scripts of a folder see one another."""
    monkeypatch.syspath_prepend(str(ROOT / "soak"))
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def any_size(monkeypatch):
    """Take no offence at what this process has grown to by other tests."""
    import outcomes

    monkeypatch.setattr(outcomes, "LARGEST", np.inf)
    monkeypatch.setattr(outcomes, "SAID_EVERY", np.inf)


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
    import page

    path = tmp_path / "page.md"
    path.write_text(f"a\n{page.BEGIN.format('soak')}\nold\n{page.END.format('soak')}\nb\n")
    monkeypatch.setattr(page, "PAGE", path)
    page.write("soak", "new\n")
    assert path.read_text().splitlines()[3] == "new"
    assert "old" not in path.read_text()
    assert path.read_text().count("figures: soak") == 2
    assert path.read_text().endswith("b\n")


def row(**given):
    found = {"part": "readers", "what": "csv", "inputs": 3, "answered": 2, "told": 1, "wrong": []}
    return found | {"slowest": 1.0, "bytes": 2.0, "seed": 7, "commit": "a", "took": 60.0} | given


def test_rows_of_several_times_are_one(tmp_path):
    import rows

    file = tmp_path / "results" / "rows.jsonl"
    more = row(inputs=4, wrong=["x"], slowest=3.0, bytes=1.0, seed=9, commit="b")
    for one in (row(), row(what="zarr"), more):
        rows.keep(one, file)
    with file.open("a") as lines:
        lines.write('{"part": "cut')
    csv, zarr = rows.merged(rows.kept(file))
    assert (csv["inputs"], csv["answered"], csv["told"], csv["wrong"]) == (7, 4, 2, ["x"])
    assert (csv["slowest"], csv["bytes"], csv["seeds"]) == (3.0, 2.0, [7, 9])
    assert (zarr["what"], zarr["seeds"]) == ("zarr", [7])


def calibrated(ranks, **given):
    made = row(part="calibration", what="MR-GP, exact", **given)
    return made | {"ranks": {"point": list(ranks)}}


def test_a_page_is_made_of_parts_run_at_different_times(tmp_path, monkeypatch):
    import page
    import rows
    import run

    path, file = tmp_path / "page.md", tmp_path / "rows"
    marks = (m.format(name) for name in ("soak", "calibration") for m in (page.BEGIN, page.END))
    path.write_text("\n".join(marks))
    monkeypatch.setattr(page, "PAGE", path)
    uniform = (np.arange(100) + 0.5) / 100
    for one in (row(), row(seed=8), calibrated(uniform[::2]), calibrated(uniform[1::2], seed=11)):
        rows.keep(one, file)
    assert run.make_page(file) == 0
    text = path.read_text()
    assert "With the seeds 7, 8, at a; all parts together took 2 minutes." in text
    assert "With the seeds 7, 11" in text
    assert "| readers: csv | 6 | 4 | 2 | 0 | 1.0 s | 0.00 GB |" in text
    assert "| MR-GP, exact | point | 100 | 0.50 | 0.80 | 0.96 | 1.00 | yes |" in text
    rows.keep(calibrated(np.full(100, 0.999)), file)
    assert run.make_page(file) == 1
    run.forget([("calibration.py", ["MR-GP, exact", 9, 1])], file)
    assert [one["part"] for one in rows.kept(file)] == ["readers", "readers"]


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("sys.exit(3)", "ended with 3"),
        ("time.sleep(600)", "no end within 2 s"),
        ("os.kill(os.getpid(), 11)", "ended with -11"),
    ],
    ids=["ends", "hangs", "dies"],
)
def test_a_part_that_comes_to_no_end_is_wrong_and_keeps_its_figures(
    does, told, tmp_path, monkeypatch
):
    import run

    said = json.dumps(row(inputs=40))
    script = f"import os, sys, time\nprint({said!r}, flush=True)\n{does}\n"
    (tmp_path / "part.py").write_text(script)
    (tmp_path / "silent.py").write_text("")
    monkeypatch.setattr(run, "HERE", tmp_path)
    found = run.tried("part.py", [], 2)
    assert found["inputs"] == 40
    assert len(found["wrong"]) == 1
    assert told in found["wrong"][0]
    assert run.faults([found]) == 1
    assert run.faults([run.tried("silent.py", [], 20)]) == 1


def test_a_calibration_that_is_not_there_is_wrong():
    import run

    whole = calibrated((np.arange(100) + 0.5) / 100)
    assert run.faults([whole]) == 0
    assert run.faults([whole | {"wrong": ["replicate 3: ValueError"]}]) == 1
    assert run.faults([whole | {"ranks": {}}]) == 1
    assert run.faults([row(part="calibration", what="MR-DGP")]) == 1


def test_a_quick_plan_has_every_reader_and_command_and_some_parts_can_be_run_alone():
    import readers
    import run

    parts = run.plan(run.QUICK, 1)
    assert {a[0] for script, a in parts if script == "readers.py"} == set(readers.KINDS)
    asked = {a[0].split(",")[0] for script, a in parts if script == "kills.py"}
    assert asked == {"fit", "predict", "data", "report", "run"}
    assert {script for script, _ in run.plan(1.0, 1, ["kills", "writers"])} == {
        "kills.py",
        "writers.py",
    }
    assert sum(a[0] for script, a in run.plan(1.0, 1) if script == "machine.py") == 2000


def test_what_guesses_is_judged_too(tmp_path, monkeypatch):
    import readers

    def guess(paths, folder):
        raise ValueError("no word of which file")

    monkeypatch.setattr(readers, "guess", guess)
    with pytest.raises(AssertionError, match="no name of the file in: no word of which"):
        readers.with_config("")(tmp_path / "a.csv")


def test_a_journal_that_says_what_was_not_written_is_wrong(tmp_path):
    import readers

    path = tmp_path / "a.journal"
    readers.write_journal(path)
    readers.read_journal(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=r"a\.journal is left"):
        readers.read_journal(path)
    path.write_bytes(whole)
    readers.read_journal.right[0]["losses"] = readers.read_journal.right[0]["losses"] + 1e-9
    with pytest.raises(AssertionError, match="what was not written"):
        readers.read_journal(path)


def test_only_kills_of_what_was_alive_count(tmp_path, monkeypatch):
    import kills

    class Killer:
        alive, calls = iter([False, True, False, True]), []

        def __init__(self, folder):
            self.out = folder / kills.WROTE["data"]

        def whole(self, arguments):
            self.out.write_bytes(b"right")
            return 1.0

        def killed(self, arguments, after):
            self.calls.append(after)
            return next(self.alive, False)

    monkeypatch.setattr(kills, "Killer", Killer)
    tried = kills.try_command("data", 2, 0)
    assert (tried.inputs, tried.answered, tried.wrong, len(Killer.calls)) == (2, 2, [], 4)
    Killer.alive = iter([True])
    tried = kills.try_command("data", 2, 0)
    assert tried.inputs == 1
    assert tried.wrong == ["only 1 of 2 kills found data alive"]


def test_a_disk_is_full_in_earnest_or_files_are_limited(tmp_path):
    import writers

    with writers.small_disk(tmp_path) as mounted:
        for how in {mounted, False}:
            (tmp_path / "old").write_bytes(b"old")
            with (
                writers.no_room(tmp_path, how),
                pytest.raises(OSError, match=r"No space|too large"),
            ):
                (tmp_path / "new").write_bytes(bytes(10_000))
            assert (tmp_path / "old").read_bytes() == b"old"
            (tmp_path / "new").write_bytes(bytes(10_000))
            (tmp_path / "new").unlink()
    assert not (tmp_path / "ballast").exists()


KINDS = ("csv", "configuration", "saved fit", "parquet", "netcdf-3", "netcdf-4", "zarr", "geojson")
KINDS += ("geopackage", "shapefile", "journal", "aurn", "cams", "laqn records", "laqn sites")
KINDS += ("--grid",)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", rest_thorough(KINDS, *KINDS[:3]))
def test_a_few_damaged_files_end_in_an_answer_or_a_sentence(kind, tmp_path, any_size, monkeypatch):
    import readers

    monkeypatch.setattr(readers.probing, "SECONDS", readers.HANG)
    tried = readers.try_kind(kind, 15, 3, tmp_path)
    assert tried.wrong == []
    assert tried.inputs == 15


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["fit", "predict, zarr", "data", "report", "run"])
def test_a_command_that_is_killed_leaves_what_was_there(name, any_size):
    import kills

    tried = kills.try_command(name, 1, 5)
    assert tried.wrong == []
    assert tried.answered == 1


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", ["full", "two", "read-only"])
def test_writers_leave_what_was_there(part, any_size, monkeypatch):
    import writers

    # Its experiment is a stand-in, which types that are checked in tests refuse.
    monkeypatch.delitem(writers.WRITERS, "scores.csv")
    tried = writers.PARTS[part](10, 5)
    assert tried.wrong == []
    assert tried.inputs > 5


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["exact", "collapsed"])
def test_a_few_hostile_sets_end_in_an_answer_or_a_sentence(name, any_size):
    import hostile

    sets = dict(list(hostile.SETS.items())[3::6])
    tried = hostile.try_model(name, sets)
    assert tried.wrong == []
    assert tried.inputs == len(sets) > 5


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_a_few_sequences_of_calls_keep_all_laws(any_size):
    import machine

    tried = machine.try_sequences(12, 4)
    assert tried.wrong == []
    assert tried.answered == tried.inputs >= 12
