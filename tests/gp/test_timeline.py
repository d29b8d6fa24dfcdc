"""The order in which a filter meets data: colours of windows, blocks of rows, what is emptied."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import mrgp
from mrgp.gp.timeline import Timeline

KERNEL = mrgp.Matern12(1.0, variance=1.0, dims=0) * mrgp.Matern12(2.0, variance=1.0, dims=1)


def planned(*supports):
    return Timeline.of((KERNEL,), 1, supports)


def windows(*spans, place=3.0):
    low, high = ([[place, span[side]] for span in spans] for side in (0, 1))
    return mrgp.boxes(low, high)


def test_adjacent_windows_share_an_accumulator_that_is_emptied_at_each_edge():
    line = planned(windows((0.0, 1.0), (1.0, 2.0), (2.0, 4.0)))
    assert line.slot.tolist() == [0, 0, 0]
    assert line.times.tolist() == [0.0, 1.0, 2.0, 4.0]
    assert line.keep[:, 0].tolist() == [0.0, 0.0, 0.0, 1.0]
    np.testing.assert_allclose(line.scale, [1.0, 1.0, 0.5])
    # What is seen at an edge is seen before it is emptied there.
    assert line.rows[:, 0].tolist() == [3, 0, 1, 2]


def test_overlapping_windows_have_accumulators_of_their_own_and_give_them_back():
    line = planned(windows((0.0, 3.0), (1.0, 4.0), (2.0, 5.0), (3.0, 6.0), (4.0, 7.0)))
    assert line.slot.tolist() == [0, 1, 2, 0, 1]
    assert line.slots.tolist() == [0, 0, 0]


def test_equal_windows_of_two_sources_at_one_place_share_an_accumulator():
    one = windows((0.0, 2.0))
    line = planned(one, one)
    assert line.slot.tolist() == [0, 0]
    assert len(line.slots) == 1
    assert sorted(line.rows[line.rows < 2].tolist()) == [0, 1]


def test_places_have_accumulators_of_their_own():
    line = planned(windows((0.0, 2.0)), windows((0.0, 2.0), place=5.0))
    assert line.slots.tolist() == [0, 1]


def test_nodes_in_time_that_share_an_end_do_not_share_an_accumulator():
    at = [[[3.0, 0.0], [3.0, 1.0]], [[3.0, 1.0], [3.0, 2.0]], [[3.0, 2.0], [3.0, 3.0]]]
    line = planned(mrgp.nodes(at))
    # The second opens with a jump at the time at which the first is seen.
    assert line.slot.tolist() == [0, 1, 0] or line.slot[0] != line.slot[1] != line.slot[2]
    assert line.flowing.tolist() == [0.0] * len(line.slots)
    for row, (first, last) in enumerate([(0, 1), (1, 2), (2, 3)]):
        added = line.jump[:, line.slot[row]]
        assert added[first] == added[last] == 0.5
        assert line.keep[last, line.slot[row]] == 0.0


def test_instants_need_no_accumulators():
    line = planned(mrgp.points([[3.0, 0.0], [4.0, 0.0], [3.0, 1.0]]))
    assert line.slots.shape == (0,)
    assert line.keep is None
    assert line.jump is None
    assert line.place.tolist() == [0, 1, 0]


def test_equal_gaps_are_found_once():
    line = planned(mrgp.points([[3.0, 0.1 * t] for t in range(50)]))
    np.testing.assert_allclose(np.sort(line.gaps), [0.0, 0.1])
    np.testing.assert_allclose(line.gaps[line.gap[1:]], 0.1)


def test_a_time_with_many_rows_takes_several_steps():
    often = [[float(p), 9.0] for p in range(60)]
    line = planned(mrgp.points([[float(t % 3), 0.1 * t] for t in range(60)] + often))
    assert line.rows.shape[1] < 60
    at_last = line.times == 9.0
    assert at_last.sum() > 1
    np.testing.assert_array_equal(line.gaps[line.gap[at_last]][1:], 0.0)
    assert sorted(line.rows[line.rows < 120].tolist()) == list(range(120))


def test_what_terms_do_not_see_has_no_states():
    common = mrgp.Matern12(1.0, variance=1.0, dims=1)
    local = mrgp.White(1.0, dims=0) * mrgp.Matern12(1.0, variance=1.0, dims=1)
    supports = [mrgp.points([[1.0, 0.0], [2.0, 0.0]]), mrgp.boxes([[0.0, 0.0]], [[1.0, 0.0]])]
    one, two = Timeline.of((common + local,), 1, supports).seats
    assert (len(one), len(two)) == (1, 2)
    # A cell has no local level: white averages to zero over it.
    assert two.share.tolist() == [1.0, 1.0, 0.0]


whole = st.integers(0, 12)


@given(st.lists(st.tuples(whole, st.integers(1, 6), st.integers(0, 1)), min_size=1, max_size=12))
def test_windows_open_at_once_never_share_an_accumulator(spans):
    low = np.array([[float(p), float(a)] for a, _, p in spans])
    high = low + [[0.0, float(width)] for _, width, _ in spans]
    line = planned(mrgp.boxes(low, high))
    for i, (a, width, p) in enumerate(spans):
        assert line.slots[line.slot[i]] == line.place[i]
        for j, (b, other, q) in enumerate(spans[:i]):
            same = line.slot[i] == line.slot[j]
            if same:
                assert p == q
                assert (a, width) == (b, other) or a >= b + other or b >= a + width
    # An accumulator is empty where a window of it opens, and not emptied while one is open.
    for i, (a, width, _) in enumerate(spans):
        emptied = line.times[line.keep[:, line.slot[i]] == 0.0]
        assert float(a) in emptied
        assert not np.any((emptied > a) & (emptied < a + width))
