"""Powers of growth: known ones are found, and what has no sizes is left out."""

import numpy as np
import pytest

from mrgp.experiments import exponents, exponents_table


def measured(law, sizes):
    return {f"values-{n}": {"mr-gp": {"cpu_seconds": {"mean": law(n)}}} for n in sizes}


def test_a_power_is_found_and_a_constant_part_counts_least_at_the_largest_sizes():
    sizes = (100, 1000, 10_000)
    exact = exponents(measured(lambda n: 3.0 * n**1.7, sizes), ["cpu_seconds"])
    assert exact["values"]["mr-gp"]["cpu_seconds"]["overall"] == pytest.approx(1.7)
    mixed = exponents(measured(lambda n: 1000.0 + n, sizes), ["cpu_seconds"])
    found = mixed["values"]["mr-gp"]["cpu_seconds"]
    assert found["last"] == pytest.approx(np.log10(11_000 / 2000), abs=1e-3)
    assert found["overall"] < found["last"] < 1


def test_what_has_one_size_or_none_is_left_out():
    found = measured(float, (100,)) | {"24h": {"mr-gp": {"cpu_seconds": {"mean": 1.0}}}}
    assert exponents(found, ["cpu_seconds"]) == {}


def test_the_table_has_a_row_for_each_quantity_and_model():
    found = exponents(measured(float, (10, 1000)), ["cpu_seconds", "seconds"])
    header, rows = exponents_table(found)
    assert header == ["grows with", "sizes", "model", "cpu_seconds"]
    assert rows == [["values", "10 to 1000", "mr-gp", "1.00 (1.00)"]]


def test_sizes_and_costs_without_logarithms_are_left_out():
    def law(size):
        return {0: 1.0, 1: np.nan, 2: -1.0, 3: np.inf}.get(size, 3.0 * size)

    found = exponents(measured(law, (0, 1, 2, 3, 10, 100)), ["cpu_seconds"])
    fitted = found["values"]["mr-gp"]["cpu_seconds"]
    assert fitted == {"overall": 1.0, "last": 1.0, "from": 10, "to": 100}
