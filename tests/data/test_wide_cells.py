"""Cells too wide to say anything are told of by every fit."""

import warnings

import numpy as np
import pytest

import mrgp

X = np.linspace(0.0, 19.0, 20)[:, None]
FEW = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)


def fitted(*sources):
    data = mrgp.Dataset(list(sources))
    return mrgp.fit(mrgp.MRGP(mrgp.RBF()), data, optimiser=FEW, progress=None)


def cells(width, lower=X):
    return mrgp.Observations(mrgp.boxes(lower, lower + width), np.cos(lower[:, 0]), name="cells")


POINTS = mrgp.Observations(mrgp.points(X), np.sin(X[:, 0]), name="sensors")


def test_cells_far_wider_than_the_points_beside_them_are_told_of():
    told = r"cells of 'cells' are about 1e\+04 wide along x1, and 'sensors' reaches over 19"
    with pytest.warns(UserWarning, match=told):
        fitted(POINTS, cells(1e4))


def test_cells_alone_that_are_all_as_good_as_one_are_told_of():
    with pytest.warns(UserWarning, match=r"about 1e\+09 wide along x1, and their middles span 19"):
        fitted(cells(1e9))


def test_cells_that_can_inform_need_no_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(POINTS, cells(1.0))
        fitted(cells(5.0))
