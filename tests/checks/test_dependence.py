"""Residuals of sources that share errors correlate; those of independent sources do not."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import mrgp
from mrgp import datasets

WAVE = mrgp.MRGP(kernel=mrgp.RBF())


def correlations(independent, seeds):
    return [
        mrgp.dependence(WAVE, datasets.dependent(seed, independent=independent).data, progress=None)
        .pairs[0]
        .correlation
        for seed in seeds
    ]


def test_shared_errors_show_as_correlation():
    assert min(correlations(False, range(4))) > 0.95


def test_errors_of_their_own_do_not():
    # One correlation of 33 clusters has a standard error of 0.18.
    assert abs(np.mean(correlations(True, range(8)))) < 0.25


def test_the_summary_gives_a_verdict():
    found = mrgp.dependence(WAVE, datasets.dependent(0).data, progress=None)
    assert found.clusters.count == 34
    assert 'they share errors: fit with weights="auto"' in found.summary()
    assert "correlation 1.00 +- 0.18 in 33 clusters" in found.summary()
    alone = mrgp.dependence(WAVE, datasets.dependent(0).data.select("fine"), progress=None)
    assert alone.pairs == ()
    assert "one source" in alone.summary()
    apart = mrgp.Dataset(
        mrgp.Observations(mrgp.points(x[:, None]), np.sin(x), name=f"at {x[0]:.0f}")
        for x in (np.linspace(0, 3, 12), np.linspace(4, 7, 12))
    )
    found = mrgp.dependence(WAVE, apart, progress=None)
    assert "1 pairs of sources never overlap" in found.summary()


def test_the_picture_shows_every_pair_with_its_units():
    data = datasets.dependent(0).data
    fine = data["fine"]
    three = mrgp.Dataset([*data, mrgp.Observations(fine.support, fine.y, task="y", name="copy")])
    found = mrgp.dependence(WAVE, three, progress=None)
    figure = found.plot()
    assert len(figure.axes) == 3
    labels = [(a.get_xlabel(), a.get_ylabel()) for a in figure.axes]
    assert labels[0] == ("residual of fine (sd)", "residual of coarse (sd)")
    drawn = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(drawn, found.pairs[0].residuals)
    assert figure.axes[0].get_xlim() == figure.axes[0].get_ylim()
    assert figure.axes[0].get_title().startswith("correlation 1.00")
    plt.close(figure)


@pytest.mark.usefixtures("as_users_see_it")
def test_wrong_data_are_told():
    with pytest.raises(TypeError, match="dependence takes a Dataset; got int"):
        mrgp.dependence(WAVE, 3)
