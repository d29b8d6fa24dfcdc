"""Counts, exposures and trials: what is refused, in which words, and what goes along with rows."""

import numpy as np
import pytest

import mrgp

X = mrgp.points(np.arange(4.0)[:, None])
COUNTS = {"y": [0, 3, 1, 2], "likelihood": mrgp.Poisson()}
SUCCESSES = {"y": [0, 3, 1, 2], "likelihood": mrgp.Binomial(), "trials": 5}
WRONG = {
    "negative": ({**COUNTS, "y": [0, -3, 1, 2]}, "counts must not be negative; 1 of 4 .* row 1"),
    "fraction": ({**COUNTS, "y": [0, 3, 1.5, 2]}, "counts must be whole numbers; .* with 1.5"),
    "no exposure": ({**COUNTS, "exposure": [1, 0, 1, 1]}, "exposure must be positive; .* row 1"),
    "shape": ({**COUNTS, "exposure": [1.0, 2.0]}, r"exposure must be one number or 4, .*\(2,\)"),
    "noise": ({**COUNTS, "noise_variance": 1.0}, "'poisson' has no noise variance"),
    "trials of counts": ({**COUNTS, "trials": 3}, r"trials= go with mrgp\.Binomial"),
    "no trials": ({**SUCCESSES, "trials": None}, r"mrgp\.Binomial\(\) needs trials="),
    "half a trial": ({**SUCCESSES, "trials": 4.5}, "trials must be whole numbers, at least 1"),
    "above": ({**SUCCESSES, "trials": 2}, "successes must not exceed trials; .* row 1 with 3"),
    "share exposed": ({**SUCCESSES, "exposure": 2.0}, "successes have trials=, and no exposure="),
    "gamma": ({"y": [1, 0, 2, 3], "likelihood": "gamma"}, "values of 'gamma' must be positive"),
    "log": ({"y": [1, -1, 2, 3], "likelihood": "log_normal"}, "'log_normal' must be positive"),
    "class": ({**COUNTS, "likelihood": mrgp.Poisson}, r"Write Poisson\(\)"),
    "unknown": ({**COUNTS, "likelihood": "zip"}, "likelihood= is one of .*'poisson'.*got 'zip'"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_what_cannot_be_is_refused_with_the_row(case):
    given, text = WRONG[case]
    with pytest.raises(ValueError, match=f"source 'districts', task 'value': .*{text}"):
        mrgp.Observations(X, name="districts", **given)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mrgp.StudentT(degrees=2.0), "StudentT: degrees must exceed 2"),
        (lambda: mrgp.Poisson(bound="tight"), "Poisson: bound= is 'matched' or 'jensen'"),
        (lambda: mrgp.MRGP(link="logit"), "link"),
    ],
)
def test_values_that_describe_no_model_are_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_exposures_and_trials_go_with_their_rows():
    counts = mrgp.Observations(X, [0, 3, np.nan, 2], likelihood="poisson", exposure=[1, 2, 3, 4])
    np.testing.assert_array_equal(counts.dropna().exposure, [1, 2, 4])
    np.testing.assert_array_equal(counts[[3, 0]].exposure, [4, 1])
    successes = mrgp.Observations(X, [0, 3, 1, 2], likelihood="binomial", trials=5)
    np.testing.assert_array_equal(successes[1:].trials, [5, 5, 5])
    record = mrgp.MRGP().frame(mrgp.Dataset([counts])).scaling.record(counts)
    np.testing.assert_array_equal(record.y, [0, 3, 2])
    np.testing.assert_array_equal(record.filled().exposure[:4], [1, 2, 4, 4])


def test_a_total_with_an_exposure_is_doubtful():
    total = mrgp.intervals([0.0, 1.0], [1.0, 2.0], kind="sum")
    with pytest.warns(UserWarning, match="there is an exposure too: both multiply the field"):
        mrgp.Observations(total, [1, 2], likelihood="poisson", exposure=2.0)
