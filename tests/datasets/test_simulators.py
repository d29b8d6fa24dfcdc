"""Simulators: what their sources report, and the truth they keep."""

import numpy as np
import pytest

from mrgp.datasets import biased, biases, city, dependent, scaling


def test_the_coarse_source_averages_the_fine_one():
    simulation = dependent(4, noise=0.5)
    fine, coarse = simulation.data["fine"], simulation.data["coarse"]
    np.testing.assert_allclose(coarse.y, fine.y[:99].reshape(33, 3).mean(1))
    np.testing.assert_allclose(
        coarse.support.x[:, :, 0], np.linspace(-2, 15, 100)[:99].reshape(33, 3)
    )
    np.testing.assert_allclose(simulation.truth, 5 * np.sin(simulation.support.x[:, 0]) ** 2)


def test_independent_sources_have_errors_of_their_own():
    errors = []
    for seed in range(200):
        data = dependent(seed, noise=0.5, independent=True).data
        x = data["fine"].support.x[:, 0]
        fine = (data["fine"].y - 5 * np.sin(x) ** 2)[:99].reshape(33, 3).mean(1)
        coarse = data["coarse"].y - (5 * np.sin(x[:99]) ** 2).reshape(33, 3).mean(1)
        errors.append((fine, coarse))
    fine, coarse = np.concatenate(errors, 1)
    assert abs(np.corrcoef(fine, coarse)[0, 1]) < 0.05
    assert coarse.std() == pytest.approx(0.5 / np.sqrt(3), rel=0.03)


def test_the_city_reports_cell_means_of_its_truth():
    simulation = city(1)
    cells = simulation.data["satellite"].support
    inside = [
        simulation.truth[
            np.all((simulation.support.x >= a) & (simulation.support.x < b), axis=1)
        ].mean()
        for a, b in zip(cells.lower, cells.upper, strict=True)
    ]
    assert np.abs(simulation.data["satellite"].y - inside).max() < 4 * 0.5
    again = city(1)
    np.testing.assert_array_equal(again.truth, simulation.truth)


def wave(x):
    return 5 * np.sin(x) ** 2


@pytest.mark.parametrize(("low", "high"), [(7.0, 12.0), (6.0, 13.0)])
def test_biased_sources_lie_where_the_paper_has_them(low, high):
    simulation = biased(3, low=low, high=high)
    data = simulation.data
    np.testing.assert_allclose(data["target"].support.x[:, 0], np.linspace(low, high, 50))
    for name, first, last in (("left", -10, 10), ("right", 10, 20)):
        support = data[name].support
        assert support.x.shape == (20, 5, 1)
        np.testing.assert_allclose(support.x.ravel(), np.linspace(first, last, 100))
        np.testing.assert_allclose(support.weights, 0.2)
    test = simulation.support.x[:, 0]
    np.testing.assert_allclose(test, np.linspace(-10, 20, 200))
    np.testing.assert_allclose(simulation.truth, wave(test))
    assert (simulation.target, simulation.task) == ("target", "y")


def test_biased_noise_enters_before_scaling_and_averaging():
    errors = {"target": [], "left": [], "right": [], "test": []}
    scales = {"target": 1.0, "left": 0.5, "right": 0.3}
    for seed in range(200):
        simulation = biased(seed)
        errors["test"].append(simulation.y - simulation.truth)
        for name, scale in scales.items():
            source = simulation.data[name]
            clean = wave(np.asarray(source.support.x)).reshape(len(source), -1).mean(1)
            errors[name].append(source.y - scale * clean)
    found = {name: np.std(np.concatenate(values)) for name, values in errors.items()}
    bag = 0.1 / np.sqrt(5)
    wanted = {"target": 0.1, "left": 0.5 * bag, "right": 0.3 * bag, "test": 0.1}
    assert found == pytest.approx(wanted, rel=0.03)


@pytest.mark.parametrize(("kind", "expected"), [("offset", 2.0), ("saturating", 0.0)])
def test_the_coarse_source_of_biases_has_its_bias(kind, expected):
    simulated = biases(4, kind)
    start = np.asarray(simulated.data["coarse"].support.lower)[:, 0]
    truth = np.interp(start + 0.25, simulated.support.x[:, 0], simulated.truth)
    error = simulated.data["coarse"].y - truth
    small = np.abs(truth) < 0.5
    np.testing.assert_allclose(np.median(error[small]), expected, atol=0.25)
    if kind == "saturating":
        assert np.abs(simulated.data["coarse"].y).max() < 2.2 < np.abs(truth).max()


def test_a_bias_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"kind= is one of .*; got 'slope'"):
        biases(0, "slope")


def test_sizes_of_the_scaling_world_are_as_asked_for():
    case = scaling(0, values=40, nodes_each=5, tasks=3, hours=6)
    assert case.data.tasks == ("t0", "t1", "t2")
    assert [len(o) for o in case.data] == [20] * 6
    assert case.data["cells", "t1"].support.atoms().lower.shape == (20, 5, 3)
    assert np.asarray(case.support.bounds[1])[:, 2].max() <= 6
    assert (len(case.y), case.task) == (2000, "t0")
    assert np.std(case.y - case.truth) == pytest.approx(0.1, rel=0.1)
