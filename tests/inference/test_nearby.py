"""Places next to those of the data are told of, where what is local matters."""

import warnings

import numpy as np
import pytest

import mrgp

INPUTS = ("east", "north", "hour")
SITES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [7.0, 7.0]])


def seen():
    x = np.array([[a, b, t] for t in range(12) for a, b in SITES])
    y = np.tile([5.0, 1.0, -2.0, 0.0], 12) + np.sin(x[:, 2] / 3)
    return mrgp.Dataset([mrgp.Observations(mrgp.points(x, inputs=INPUTS), y, name="sites")])


@pytest.fixture(scope="module")
def network():
    where = ("east", "north")
    local = mrgp.White(dims=where) * mrgp.Matern12(dims="hour")
    kernel = mrgp.Matern12(dims=where) * mrgp.Matern12(dims="hour") + local
    quick = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    return mrgp.fit(mrgp.MRGP(kernel, method="exact"), seen(), optimiser=quick)


def at(*places):
    return mrgp.points([[*place, 3.0] for place in places], inputs=INPUTS)


def test_places_next_to_those_of_the_data_are_told_of(network):
    text = r"predict: 1 of 2 places lie next to places of the data, but not at them \(the first by"
    with pytest.warns(UserWarning, match=text + r" 0\.005\): what is local"):
        mrgp.predict(network, at((10.0, 0.005), (3.0, 3.0)))


def test_places_of_the_data_and_far_ones_need_no_word(network):
    smooth = mrgp.fit(
        mrgp.MRGP(mrgp.RBF(), method="exact"),
        seen(),
        optimiser=mrgp.LBFGS(max_steps=1, starts=1, candidates=0),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mrgp.predict(network, at((10.0, 0.0), (10.0, 0.000001), (3.0, 3.0)))
        lower = np.array([[9.9, 0.0, 1.0]])
        mrgp.predict(network, mrgp.boxes(lower, lower + 0.2, inputs=INPUTS))
        mrgp.predict(smooth, at((10.0, 0.005)))
