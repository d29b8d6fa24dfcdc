"""Counts of North Carolina's counties: what is known of them, and what is held out."""

import os
from pathlib import Path

import numpy as np
import pytest

import mrgp
from mrgp.datasets import counts, counts_draws

pytestmark = pytest.mark.skipif(
    not Path(os.environ.get("MRGP_DATA") or "-").is_dir(), reason="needs the recorded data"
)


@pytest.mark.parametrize("mean", [1.2, 60.0])
def test_simulated_counts_have_their_mean_and_rates_their_averages(mean):
    case, again, other = (counts(draw, mean=mean) for draw in ("3", "3", "4"))
    seen = case.data["register"]
    assert len(seen) + len(case.y) == 100
    assert np.concatenate([seen.y, case.y]).mean() == pytest.approx(
        mean, rel=4 / (100 * mean) ** 0.5
    )
    np.testing.assert_array_equal(seen.y, again.data["register"].y)
    assert not np.array_equal(seen.y, other.data["register"].y)
    county, pixel = case.fields["county"], case.fields["pixel"]
    weights = np.asarray(county.support.weights)
    spread = np.zeros(weights.shape)
    spread[weights > 0] = pixel.values
    np.testing.assert_allclose((weights * spread).sum(1), county.values)
    assert set(case.truth) <= set(county.values)


def test_folds_hold_every_county_out_once_in_each_draw():
    folds = [counts(draw, "sids") for draw in counts_draws("sids")[20:30]]
    names = [n for case in folds for n in np.round(case.support.centres[:, 3]).tolist()]
    assert sorted(names) == list(range(100))
    assert sum(case.y.sum() for case in folds) == 667
    assert sum(case.exposure.sum() for case in folds) == pytest.approx(329.962)


def test_later_years_have_their_own_births():
    case = counts("1979-84", "sids-later")
    assert case.data["register"].y.sum() == 667
    assert case.y.sum() == 836
    assert case.held_out.likelihood == mrgp.Poisson()
    assert case.exposure.sum() == pytest.approx(422.392)
    with pytest.raises(ValueError, match="no draw of 'sids-later' is named '1'"):
        counts("1", "sids-later")
    with pytest.raises(ValueError, match="no world is named 'mars'"):
        counts("1", "mars")
