"""Concentrations below zero: which units are meant, and what a prediction says of itself."""

import numpy as np
import pytest

import mrgp
from mrgp.prediction.units import is_concentration


@pytest.mark.parametrize(
    "units",
    ["ug/m3", "µg/m³", "μg/m^3", "ug m-3", "µg·m⁻³", "ug.m-3", "mg/m3", "kg m**-3", "ppb", "PPM",
     "ppbv", "mg/L", "ug / l", "nmol/L", "mol m-3", "#/cm3", "cm-3", "mg/kg", "g kg-1", "Bq/m3",
     "micrograms per cubic m3", "ng/mL"],
)  # fmt: skip
def test_concentrations(units):
    assert is_concentration(units)


@pytest.mark.parametrize(
    "units", [None, "", "degC", "K", "m", "m3", "kg", "m/s", "mm/day", "h-1", "m-2"]
)
def test_others(units):
    assert not is_concentration(units)


def prediction(means, units, sd=1.0):
    means = np.asarray([means], float)
    return mrgp.Prediction(
        support=mrgp.points(np.arange(means.shape[1], dtype=float)[:, None]),
        task="no2",
        source=None,
        units=units,
        component_weights=np.ones_like(means),
        means=means,
        variances=np.full_like(means, sd**2),
    )


def test_a_prediction_says_how_many_concentrations_may_be_negative():
    # P(value < 0) is 0.0250 at 1.95996 standard deviations.
    text = repr(prediction([10.0, 1.95, 1.97, -3.0], "µg/m³"))
    assert text.endswith(
        "; 2 of 4 have P(value < 0) above 0.025, which a concentration cannot be: see cdf(0.0), cut"
        " intervals at zero, or fit logarithms)"
    )
    assert text.count("P(value < 0)") == 1


@pytest.mark.parametrize(
    ("means", "units"), [([10.0, 2.0], "ppb"), ([-5.0], "degC"), ([-5.0], None)]
)
def test_otherwise_it_says_nothing(means, units):
    assert "P(value" not in repr(prediction(means, units))
