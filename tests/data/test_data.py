"""Observations, datasets, composite weights and scaling."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

import mrgp
from mrgp.data import Scaling, as_key, as_seed, by_process, process_weights, require_processes

X = np.arange(4.0)[:, None]
Y = np.array([1.0, np.nan, 3.0, 5.0])
POINTS = mrgp.points(X)


def observations(**changes):
    return mrgp.Observations(
        **({"support": POINTS, "y": Y, "task": "no2", "name": "laqn"} | changes)
    )


def satellite(**changes):
    given = {
        "support": mrgp.intervals([0.0, 2.0], [2.0, 4.0]),
        "y": [2.0, 4.0],
        "task": "no2",
        "name": "sat",
    }
    return mrgp.Observations(**(given | changes))


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"support": X}, TypeError, r"must be a support such as mrgp.points\(x\); got ndarray"),
        ({"y": Y[:3]}, ValueError, r"y must have shape \(4,\), one value for each region .*\(3,\)"),
        ({"y": Y[:, None]}, ValueError, r"y must have shape \(4,\).* got \(4, 1\)"),
        ({"y": 1.0}, ValueError, r"y must have shape \(4,\).* got \(\)"),
        ({"y": ["a", "b", "c", "d"]}, TypeError, "y must be numbers, with NaN for missing"),
        (
            {"support": POINTS[:0], "y": []},
            ValueError,
            "there are no values. Leave the source out",
        ),
        (
            {"y": Y * np.nan},
            ValueError,
            r"all 4 values are missing \(NaN\). Leave the source out",
        ),
        (
            {"y": [0.0, np.inf, -np.inf, np.nan]},
            ValueError,
            "y is infinite in 2 of 4 rows, first in row 1. Use NaN for missing values",
        ),
        (
            {"y": [0.0, 1.0, 9.96921e300, np.nan]},
            ValueError,
            r"y is 9.96921e\+300 in row 2, which looks like a fill value. Use NaN",
        ),
        (
            {"noise_variance": [1.0, 2.0]},
            ValueError,
            r"noise_variance must be one number or 4; got shape \(2,\)",
        ),
        (
            {"noise_variance": [1.0, 2.0, 0.0, 1.0]},
            ValueError,
            "noise_variance must be positive and finite; it is 0.0 in row 2",
        ),
        (
            {"noise_variance": -1.0},
            ValueError,
            "noise_variance must be positive and finite; it is -1.0 in row 0",
        ),
        (
            {"likelihood": "zebra"},
            ValueError,
            r"likelihood= is one of \('gaussian', .*; got 'zebra'",
        ),
    ],
)
def test_wrong_observations_name_the_process_and_the_fault(changes, error, text):
    with pytest.raises(error, match=f"source 'laqn', task 'no2': .*{text}"):
        observations(**changes)


def test_observations_know_what_was_seen():
    o = observations(units="ug/m3")
    assert o.process == ("laqn", "no2")
    assert o.observed.tolist() == [True, False, True, True]
    assert repr(o) == "Observations(laqn, no2: 3 of 4 values observed; Points(4 means: x1 0 to 3))"


def test_noise_variance_is_one_number_for_each_value():
    np.testing.assert_array_equal(observations(noise_variance=2.0).noise_variance, [2, 2, 2, 2])
    kept = observations(noise_variance=[1.0, np.nan, 3.0, 4.0]).noise_variance
    np.testing.assert_array_equal(kept[[0, 2, 3]], [1, 3, 4])
    assert np.isfinite(kept).all()


@pytest.mark.parametrize(
    "index", [slice(1, 4), [0, 2], np.array([True, False, True, False]), np.array([3, 0])]
)
def test_indexing_takes_support_values_and_noise_together(index):
    o = observations(noise_variance=[1.0, 2.0, 3.0, 4.0], units="K")[index]
    np.testing.assert_array_equal(o.y, Y[index])
    np.testing.assert_array_equal(o.support.x, X[index])
    np.testing.assert_array_equal(o.noise_variance, np.array([1.0, 2.0, 3.0, 4.0])[index])
    assert (o.process, o.units) == (("laqn", "no2"), "K")


def test_an_integer_selects_one_value():
    for index in (0, np.int64(3), -1):
        one = observations(noise_variance=2.0)[index]
        np.testing.assert_array_equal(one.y, Y[[index]])
        np.testing.assert_array_equal(one.support.x, X[[index]])
    with pytest.raises(IndexError):
        observations()[4]


def test_dropna_keeps_the_observed_values():
    o = observations(noise_variance=[1.0, 2.0, 3.0, 4.0]).dropna()
    np.testing.assert_array_equal(o.y, [1, 3, 5])
    np.testing.assert_array_equal(o.support.x[:, 0], [0, 2, 3])
    np.testing.assert_array_equal(o.noise_variance, [1, 3, 4])
    assert o.dropna() is o


def test_values_are_copied_into_double_precision():
    o = observations(y=[1, 2, 3, 4])
    assert o.y.dtype == np.float64


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: [], ValueError, "Dataset needs at least one source of observations"),
        (lambda: [POINTS], TypeError, "Dataset takes Observations; got Points"),
        (
            lambda: [observations(), observations(y=[1.0, 2.0, 3.0, 4.0])],
            ValueError,
            r"source 'laqn', task 'no2': the pair \(source, task\) is given twice. Join the two",
        ),
        (
            lambda: [observations(), satellite(support=mrgp.points([[0.0, 1.0]]), y=[1.0])],
            ValueError,
            "source 'sat', task 'no2': the support has 2 inputs, but source 'laqn', task 'no2' has"
            " 1. All sources share one set of inputs",
        ),
        (
            lambda: [
                observations(support=mrgp.points(X, inputs="hour")),
                satellite(support=mrgp.points(X, inputs="day"), y=Y),
            ],
            ValueError,
            r"source 'sat', task 'no2': the inputs are \('day',\), but source 'laqn', task 'no2'"
            r" has \('hour',\). Give all sources the same columns in one order",
        ),
        (
            lambda: [observations(units="ppb"), satellite(units="ug/m3")],
            ValueError,
            "units 'ug/m3' differ from 'ppb', which another source of the task uses. Convert one",
        ),
    ],
)
def test_wrong_datasets_are_refused_in_words(make, error, text):
    with pytest.raises(error, match=text):
        mrgp.Dataset(make())


def dataset():
    other = observations(
        task="pm25", y=[1.0, 2.0, 3.0, 4.0], support=mrgp.points(X + 1), units="ppb"
    )
    return mrgp.Dataset([observations(units="ug/m3"), satellite(), other])


def test_a_dataset_knows_its_processes_sources_tasks_and_units():
    data = dataset()
    assert data.processes == (("laqn", "no2"), ("sat", "no2"), ("laqn", "pm25"))
    assert data.sources == ("laqn", "sat")
    assert data.tasks == ("no2", "pm25")
    assert data.units == {"no2": "ug/m3", "pm25": "ppb"}
    assert len(data) == 3
    assert [o.process for o in data] == list(data.processes)


def test_one_source_needs_no_list():
    assert mrgp.Dataset(observations()).processes == (("laqn", "no2"),)


def test_names_of_the_inputs_spread_to_supports_without():
    data = mrgp.Dataset([observations(), satellite(support=mrgp.points(X, inputs="hour"), y=Y)])
    assert data.inputs == ("hour",)
    assert [s.inputs for s in data.supports] == [("hour",), ("hour",)]


def test_a_process_is_found_by_pair_or_by_a_source_with_one_task():
    data = dataset()
    assert data["sat"].process == data["sat", "no2"].process == ("sat", "no2")
    with pytest.raises(KeyError, match="'laqn' has several tasks; the processes are"):
        data["laqn"]
    with pytest.raises(KeyError, match="'aurn' has no observations; the processes are"):
        data["aurn"]


def test_select_keeps_a_source_a_task_or_both():
    data = dataset()
    assert data.select(source="laqn").processes == (("laqn", "no2"), ("laqn", "pm25"))
    assert data.select(task="no2").processes == (("laqn", "no2"), ("sat", "no2"))
    assert data.select("laqn", "pm25").processes == (("laqn", "pm25"),)


@pytest.mark.parametrize(
    ("source", "task", "text"),
    [
        ("aurn", None, r"No source is named 'aurn'; the sources are \('laqn', 'sat'\)"),
        (None, "o3", r"No task is named 'o3'; the tasks are \('no2', 'pm25'\)"),
        ("sat", "pm25", "Source 'sat' does not observe task 'pm25'"),
    ],
)
def test_select_says_what_there_is(source, task, text):
    with pytest.raises(ValueError, match=text):
        dataset().select(source, task)


def test_dropna_and_collapse_act_on_every_source():
    data = dataset().dropna()
    assert [len(o) for o in data] == [3, 2, 4]
    centres = dataset().collapse()
    np.testing.assert_array_equal(centres["sat"].support.x, [[1.0], [3.0]])
    np.testing.assert_array_equal(centres["sat"].y, [2.0, 4.0])


def test_repr_is_a_table_of_the_processes():
    assert repr(dataset()).splitlines() == [
        "Dataset: 2 sources, 2 tasks, inputs (x1)",
        "  source  task  values  missing  support",
        "  laqn    no2        4        1  Points(4 means: x1 0 to 3)",
        "  sat     no2        2        0  Boxes(2 means: x1 0 to 4, width 2)",
        "  laqn    pm25       4        0  Points(4 means: x1 1 to 4)",
    ]


def many(n=50):
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    y[::7] = np.nan
    noise = rng.uniform(1, 2, n)
    first = mrgp.Observations(mrgp.points(np.arange(n)[:, None]), y, name="a", noise_variance=noise)
    second = mrgp.Observations(mrgp.points(np.arange(20)[:, None]), np.arange(20.0), name="b")
    return mrgp.Dataset([first, second])


def as_rows(o):
    noise = o.y * 0 if o.noise_variance is None else o.noise_variance
    return set(zip(o.support.x[:, 0].tolist(), o.y.tolist(), noise.tolist(), strict=True))


def test_batch_draws_observed_rows_without_replacement():
    data = many()
    drawn = data.batch(10, key=3)
    for whole, part in zip(data.dropna(), drawn, strict=True):
        assert len(part) == len(as_rows(part)) == 10
        assert as_rows(part) <= as_rows(whole)


def test_a_batch_larger_than_a_source_is_all_of_it():
    data = many()
    assert [len(o) for o in data.batch(30)] == [30, 20]
    assert as_rows(data.batch(1000)["a"]) == as_rows(data["a"].dropna())


def test_batches_depend_on_the_key_alone():
    data = many()
    np.testing.assert_array_equal(data.batch(10, 1)["a"].y, data.batch(10, 1)["a"].y)
    np.testing.assert_array_equal(
        data.batch(10, 1)["a"].y, data.batch(10, jax.random.key(1))["a"].y
    )
    assert data.batch(10, 1)["a"].y.tolist() != data.batch(10, 2)["a"].y.tolist()


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.8])
def test_split_parts_every_source_into_two(fraction):
    data = many()
    first, second = data.split(fraction, key=2)
    for whole, a, b in zip(data.dropna(), first, second, strict=True):
        assert len(a) == round(fraction * len(whole))
        assert as_rows(a) | as_rows(b) == as_rows(whole)
        assert not as_rows(a) & as_rows(b)


def test_batch_and_split_refuse_impossible_sizes():
    with pytest.raises(ValueError, match="batch: size must be at least 1; got 0"):
        many().batch(0)
    for fraction in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="split: fraction must lie between 0 and 1; got"):
            many().split(fraction)
    with pytest.raises(
        ValueError,
        match=r"split: source 'sat', task 'no2' has 2 observed values, too few to split 0.9 : 0.1",
    ):
        mrgp.Dataset([satellite()]).split(0.9)


def test_keys_may_be_integers_or_jax_keys():
    assert (as_key(3) == jax.random.key(3)).all()
    assert as_seed(3) == 3
    assert as_seed(np.int64(3)) == 3
    assert as_seed(jax.random.key(3)) == 3


PROCESSES = (("laqn", "no2"), ("sat", "no2"), ("laqn", "pm25"))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, [1.0, 1.0, 1.0]),
        ({}, [1.0, 1.0, 1.0]),
        ({"laqn": 0.5}, [0.5, 1.0, 0.5]),
        ({("laqn", "no2"): 0.25}, [0.25, 1.0, 1.0]),
        ({"laqn": 0.5, ("laqn", "no2"): 0.25, "sat": 2}, [0.25, 2.0, 0.5]),
        ({"sat": np.float64(0.3)}, [1.0, 0.3, 1.0]),
    ],
)
def test_weights_are_looked_up_by_pair_then_by_source(weights, expected):
    assert process_weights(weights, PROCESSES) == dict(zip(PROCESSES, expected, strict=True))


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ({"aurn": 1.0}, r"weights: 'aurn' is neither a source nor a \(source, task\) of the data"),
        ({("sat", "pm25"): 1.0}, r"weights: \('sat', 'pm25'\) is neither a source"),
        ({"no2": 1.0}, "weights: 'no2' is neither a source"),
        ({"sat": 0.0}, "weights: the weight of 'sat' must be positive; got 0.0"),
        ({"sat": -1.0}, "the weight of 'sat' must be positive; got -1.0"),
        ({"sat": np.nan}, "the weight of 'sat' must be positive; got nan"),
        ({"sat": np.inf}, "the weight of 'sat' must be positive; got inf"),
        ({"sat": [1.0]}, r"the weight of 'sat' must be positive; got \[1.0\]"),
    ],
)
def test_wrong_weights_are_refused_in_words(weights, text):
    with pytest.raises(ValueError, match=text):
        process_weights(weights, PROCESSES)


def test_scaling_of_means_is_the_mean_and_spread_of_all_sources_of_a_task():
    scaling = Scaling.of(dataset())
    values = np.array([1.0, 3.0, 5.0, 2.0, 4.0])
    assert scaling.tasks == ("no2", "pm25")
    np.testing.assert_allclose(scaling.offset, [values.mean(), 2.5])
    np.testing.assert_allclose(scaling.scale, [values.std(), np.arange(1.0, 5.0).std()])
    np.testing.assert_allclose(scaling.centre, [2.0])


def totals(level, wave):
    """Return integrals of a field over intervals of different widths, beside points."""
    start = np.array([0.0, 1.0, 3.0, 7.0])
    width = np.array([1.0, 2.0, 4.0, 0.5])
    sums = mrgp.Observations(
        mrgp.intervals(start, start + width, kind="sum"), width * (level + wave), name="sums"
    )
    means = mrgp.Observations(mrgp.points(start[:, None]), level + wave, name="means")
    return mrgp.Dataset([sums, means]), width


def test_the_offset_of_totals_acts_through_their_measure():
    wave = np.array([1.0, -1.0, 1.0, -1.0])
    data, width = totals(100.0, wave)
    scaling = Scaling.of(data)
    total, y = np.concatenate([width, np.ones(4)]), np.concatenate([o.y for o in data])
    expected = np.linalg.lstsq(total[:, None], y)[0]
    np.testing.assert_allclose(scaling.offset, expected)
    record = scaling.record(data["sums"])
    np.testing.assert_allclose(record.y, data["sums"].y - expected * width)
    densities = np.abs(y - expected * total) / total
    np.testing.assert_allclose(scaling.scale, [1.4826 * np.median(densities)])


def test_a_constant_field_seen_as_totals_has_no_residual():
    data, _ = totals(100.0, np.zeros(4))
    scaling = Scaling.of(data)
    np.testing.assert_allclose(scaling.offset, [100.0])
    for o in data:
        np.testing.assert_allclose(scaling.record(o).y, np.zeros(4), atol=1e-11)


@pytest.mark.parametrize(("level", "scale"), [(5.0, 5.0), (-5.0, 5.0), (0.0, 1.0)])
def test_constant_data_are_scaled_by_their_level_or_one(level, scale):
    data = mrgp.Dataset([observations(y=np.full(4, level))])
    scaling = Scaling.of(data)
    np.testing.assert_allclose(scaling.offset, [level])
    np.testing.assert_allclose(scaling.scale, [scale])


def test_contrasts_have_no_offset():
    contrast = mrgp.nodes([[[0.0], [1.0]], [[2.0], [4.0]]], [[1.0, -1.0]] * 2, kind="sum")
    scaling = Scaling.of(mrgp.Dataset([mrgp.Observations(contrast, [1.0, 5.0])]))
    np.testing.assert_allclose([scaling.offset[0], scaling.scale[0]], [0.0, 2.0])


def test_a_record_is_centred_and_without_missing_values():
    data = mrgp.Dataset([observations(noise_variance=[1.0, 2.0, 3.0, 4.0])])
    record = Scaling.of(data).record(data["laqn"], 0.5)
    np.testing.assert_allclose(record.support.x[:, 0], np.array([0.0, 2.0, 3.0]) - 1.5)
    np.testing.assert_allclose(record.y, [-2.0, 0.0, 2.0])
    np.testing.assert_array_equal(record.noise_variance, [1, 3, 4])
    assert record.weight == 0.5


values = hnp.arrays(np.float64, 6, elements=st.floats(-1e3, 1e3, width=32))


@settings(max_examples=40, deadline=None)
@given(y=values, shift=st.floats(-1e3, 1e3), factor=st.sampled_from([1e-3, 7.0, 1e4]))
def test_scaling_follows_affine_changes_of_units(y, shift, factor):
    y = y + np.arange(6.0)
    support = mrgp.points(np.arange(6.0)[:, None])

    def scaling(values):
        return Scaling.of(mrgp.Dataset([mrgp.Observations(support, values)]))

    if np.std(y) < 1e-2:
        return
    before, after = scaling(y), scaling(factor * (y + shift))
    np.testing.assert_allclose(after.scale, factor * before.scale, rtol=1e-6)
    np.testing.assert_allclose(
        after.offset, factor * (before.offset + shift), rtol=1e-9, atol=1e-9 * factor * 2e3
    )


def test_what_is_given_is_looked_up_by_process_then_by_source_then_for_all():
    given = {"a": 1, ("a", "no2"): 2, "b": None}
    processes = [("a", "no2"), ("a", "o3"), ("b", "no2"), ("c", "no2")]
    assert [by_process(given, process, 3) for process in processes] == [2, 1, None, 3]
    assert by_process(None, ("a", "no2"), 3) is None
    assert by_process("same", ("a", "no2"), 3) == "same"


def test_names_that_are_no_process_are_refused():
    require_processes(["a", ("a", "no2")], (("a", "no2"),), "batch")
    with pytest.raises(ValueError, match=r"batch: 'no2' is neither a source nor a \(source"):
        require_processes(["no2"], (("a", "no2"),), "batch")
