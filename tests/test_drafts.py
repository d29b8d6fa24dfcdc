"""Writers leave the whole old file or the whole new one, whoever else writes and whatever fails."""

import errno
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mrgp import _drafts
from mrgp._drafts import check_writable, draft, exchange, write_bytes, write_text
from mrgp.io.exports import write

FRAME = pd.DataFrame({"a": np.arange(20_000) / 7, "b": "text"})
GRID = xr.Dataset({"a": (("y", "x"), np.arange(40_000.0).reshape(200, 200))})


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_file_takes_its_place_whole(tmp_path):
    file = tmp_path / "a.csv"
    write_text(file, "old")
    with draft(file) as named:
        named.write_text("half")
        assert file.read_text() == "old"
        assert named.suffix == ".csv"
    assert file.read_text() == "half"
    assert names(tmp_path) == ["a.csv"]


def test_what_goes_wrong_leaves_the_old_file_and_no_draft(tmp_path):
    file = tmp_path / "a"
    write_text(file, "old")

    def torn():
        with draft(file) as named:
            named.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"a could not be written: No space left.*as it was\.$"):
        torn()
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_leftovers_of_processes_that_are_gone_are_removed(tmp_path):
    code = f"""
import os
from mrgp._drafts import draft
with draft({str(tmp_path / "a[1].txt")!r}) as named:
    named.write_text("half")
    os._exit(9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(names(tmp_path)) == 1
    other = tmp_path / f"{_drafts.BEGIN}-{'0' * 8}-1-abcd-a[1].txt"
    other.write_text("of another machine, yesterday")
    os.utime(other, (0, time.time() - 2 * _drafts.FORGOTTEN))
    mine = tmp_path / f"{_drafts.BEGIN}-{_drafts._HERE}-{os.getpid()}-abcd-a[1].txt"
    mine.write_text("of a process that runs")
    write_text(tmp_path / "a[1].txt", "whole")
    assert names(tmp_path) == sorted([mine.name, "a[1].txt"])


def test_links_modes_and_long_names_are_kept(tmp_path):
    file = tmp_path / ("n" * 240 + ".txt")
    write_text(file, "old")
    file.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(file)
    write_text(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    write_bytes(os.devnull, b"nowhere")


WRITE = """
import sys
from mrgp._drafts import write_bytes
for _ in range(200):
    write_bytes(sys.argv[1], sys.argv[2].encode() * 100_000)
"""


def test_two_writers_and_a_reader_never_see_half_a_file(tmp_path):
    file = tmp_path / "shared"
    file.write_bytes(b"a" * 100_000)
    both = [subprocess.Popen([sys.executable, "-c", WRITE, file, letter]) for letter in "ab"]
    torn = 0
    while any(writer.poll() is None for writer in both):
        content = file.read_bytes()
        torn += len(content) != 100_000 or len(set(content)) != 1
    assert [writer.returncode for writer in both] == [0, 0]
    assert torn == 0
    assert names(tmp_path) == ["shared"]


@pytest.fixture
def little_room():
    """A limit on the size of files, which fails a writer as a full disk does."""
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(
    ("suffix", "made"), [(".csv", FRAME), (".parquet", FRAME), (".nc", GRID)], ids=str
)
def test_a_full_disk_ends_in_a_sentence_and_the_old_file_stays(suffix, made, tmp_path, little_room):
    file = tmp_path / f"a{suffix}"
    file.write_text("old")
    with pytest.raises(OSError, match=r"could not be written: .*What was there is as it was"):
        write(made, file)
    assert file.read_text() == "old"
    assert names(tmp_path) == [file.name]


def test_what_cannot_be_written_is_known_before(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"--out .*file/a cannot be written: Not a directory\."):
        check_writable(tmp_path / "file" / "a", "--out ")
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        check_writable(tmp_path)
    check_writable(tmp_path / "new" / "folder" / "a")
    assert names(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_files_and_folders_are_refused(tmp_path):
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(0o400)
    with pytest.raises(OSError, match="cannot be written: Permission denied"):
        check_writable(file)
    with pytest.raises(PermissionError, match="it is read-only"):
        write_text(file, "new")


WRITING = (".write_text(", ".write_bytes(", '.open("w', ".savefig(", "np.savetxt(")
WRITING += tuple(f".to_{kind}(" for kind in ("csv", "json", "parquet", "file", "raster", "netcdf"))


def test_a_name_for_two_folders_is_never_without_one(tmp_path, monkeypatch):
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)
    seen, replace = [], os.replace

    def watched(*args):
        replace(*args)
        seen.append((tmp_path / "old").exists())

    monkeypatch.setattr(os, "replace", watched)
    exchange(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old" / "a").read_text() == "new"
    assert (tmp_path / "new" / "a").read_text() == "old"
    if sys.platform == "linux":
        assert all(seen)
    # Where the system cannot, there is a moment without, and the same end.
    monkeypatch.setattr(_drafts, "_exchanged", lambda *_: False)
    exchange(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old" / "a").read_text() == "old"
    assert names(tmp_path) == ["new", "old"]


def test_no_writer_goes_past_the_drafts():
    # What is written in place is lost where the writer is killed.
    root = Path(_drafts.__file__).parent
    allowed = {"_drafts.py", "exports.py", "metering.py"}
    found = [
        f"{path.name}: {line.strip()}"
        for path in root.rglob("*.py")
        if path.name not in allowed
        for line in path.read_text().splitlines()
        if any(word in line for word in WRITING)
        and "draft(" not in line
        and "(named" not in line
        and "(engine" not in line  # into memory
        and ">>>" not in line
        and "..." not in line
    ]
    assert found == []
