"""A fit that was killed goes on from its journal, and ends where it would have ended."""

import time

import numpy as np
import pytest

import mrgp
import zoo
from groups import rest_thorough
from mrgp.inference import journal, lbfgs
from mrgp.inference.journal import Journal, kept


class KilledError(Exception):
    """Stands for the end of the process."""


class KillAt:
    """A progress object at which the process ends, at some step of all."""

    def __init__(self, step, error=KilledError):
        self.left, self.error = step, error

    def start(self, title, total):
        pass

    def update(self, step, text):
        self.left -= 1
        if self.left == 0:
            raise self.error

    def finish(self, text):
        pass


def fitted(name, progress=None):
    recipe, data = zoo.RECIPES[name]
    optimiser = mrgp.Adam(steps=400) if name == "svgp" else zoo.QUICK
    return mrgp.fit(recipe, data(), optimiser=optimiser, progress=progress)


def same(one, other):
    assert one.status == other.status
    np.testing.assert_array_equal(one.history, other.history)
    assert list(one.parameters()) == list(other.parameters())
    for name, value in one.parameters().items():
        np.testing.assert_array_equal(value, other.parameters()[name])


@pytest.mark.parametrize(
    ("name", "step"),
    rest_thorough(
        [("exact", 5), ("network", 12), ("svgp", 14), ("deep", 20), ("vbagg", 3), ("cascade", 24)],
        0,
        2,
    ),
)
def test_a_fit_that_was_killed_ends_as_if_it_never_was(name, step, tmp_path):
    path = tmp_path / "journal"
    whole = fitted(name)
    book = Journal(path, "a fit", every=0.0)
    with pytest.raises(KilledError), kept(book):
        fitted(name, KillAt(step))
    again = Journal(path, "a fit", every=0.0)
    assert again.read()
    with kept(again):
        same(fitted(name), whole)
    # What is known is not evaluated again, and a journal of all of it knows the end.
    done = Journal(path, "a fit")
    assert done.read()
    with kept(done):
        same(fitted(name), whole)


def test_what_is_known_is_not_evaluated_again(tmp_path, monkeypatch):
    counts = []
    measure = lbfgs._Search.measure
    monkeypatch.setattr(
        lbfgs._Search, "measure", lambda self, x: counts.append(1) or measure(self, x)
    )
    with kept(Journal(tmp_path / "journal", "a fit", every=0.0)):
        fitted("exact")
    before = len(counts)
    assert before > 10
    again = Journal(tmp_path / "journal", "a fit")
    assert again.read()
    with kept(again):
        fitted("exact")
    assert len(counts) == before


def test_ctrl_c_keeps_a_journal_of_what_was_done_until_then(tmp_path):
    whole = fitted("network")
    book = Journal(tmp_path / "journal", "a fit")
    with kept(book):
        stopped = fitted("network", KillAt(8, KeyboardInterrupt))
    assert stopped.status.code == "interrupted"
    again = Journal(tmp_path / "journal", "a fit")
    assert again.read()
    with kept(again):
        same(fitted("network"), whole)


@pytest.mark.thorough
def test_ctrl_c_acts_soon_in_a_stochastic_fit():
    fitted("svgp")
    stop = KillAt(14, KeyboardInterrupt)
    before = time.process_time()
    stopped = fitted("svgp", stop)
    assert stopped.status.code == "interrupted"
    assert time.process_time() - before < 5


def test_a_journal_of_another_fit_or_a_damaged_one_is_left(tmp_path):
    path = tmp_path / "journal"
    with kept(Journal(path, "a fit", every=0.0)):
        fitted("exact")
    assert not Journal(path, "another fit").read()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert not Journal(path, "a fit").read()
    assert not Journal(tmp_path / "missing", "a fit").read()


def test_a_journal_that_leads_elsewhere_is_left_where_the_ways_part(tmp_path):
    path = tmp_path / "journal"
    with kept(Journal(path, "a fit", every=0.0)):
        fitted("affine")
    other = Journal(path, "a fit", every=0.0)
    assert other.read()
    whole = fitted("exact")
    with kept(other):
        same(fitted("exact"), whole)


def test_a_journal_that_cannot_be_written_does_not_end_the_fit(tmp_path):
    book = Journal(tmp_path / "no folder" / "journal", "a fit", every=0.0)
    with (
        kept(book),
        pytest.warns(UserWarning, match=r"without a journal: .* not be written"),
    ):
        fitted("exact")
    assert book.closed


def test_fits_without_a_journal_keep_none():
    page = journal.new_page()
    page.add(np.zeros(2), 1.0, np.zeros(2))
    assert page.losses == []
