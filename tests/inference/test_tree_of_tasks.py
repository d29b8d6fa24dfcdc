"""Three sources, two tasks and a target of averages: everything is predicted, and covered."""

import numpy as np
import pytest

import mrgp
from mrgp.datasets.simulators import RandomFunction

pytestmark = pytest.mark.thorough

EXTENT = 15.0


class World:
    """PM2.5 as a random function, PM10 in proportion to it, and biased ways to see them."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.field = RandomFunction(self.rng, 1.2)

    def pm25(self, x):
        return 10 + 3 * self.field(x)

    def pm10(self, x):
        return 6 + 1.8 * self.pm25(x)

    def model(self, x):
        return 2 + 0.6 * self.pm25(x)

    def satellite(self, x):
        return 14 * np.tanh(self.pm25(x) / 14)

    def means(self, function, start, width, noise):
        inside = start[:, None] + width * (np.arange(30) + 0.5) / 30
        return function(inside).mean(1) + noise * self.rng.standard_normal(len(start))

    def observe(self, name, task, function, start, width, noise):
        y = self.means(function, start, width, noise)
        support = mrgp.intervals(start, start + width, inputs="day")
        return mrgp.Observations(support, y, task=task, name=name, units="ug/m3")

    def data(self):
        start = np.sort(self.rng.uniform(0, 8, 30))
        cells, days = np.arange(0.0, EXTENT, 0.5), np.arange(0.0, EXTENT, 0.75)
        monitor = self.observe("monitor", "pm25", self.pm25, start, 0.3, 0.2)
        missing = np.where(np.arange(30) == 3, np.nan, monitor.y)
        return mrgp.Dataset(
            [
                monitor.replace(y=missing),
                self.observe("model", "pm25", self.model, cells, 0.5, 0.1),
                self.observe("satellite", "pm25", self.satellite, days, 0.0, 0.2),
                self.observe("monitor", "pm10", self.pm10, start, 0.3, 0.3),
                self.observe("model", "pm10", self.pm10, days, 0.75, 0.2),
            ]
        )


@pytest.fixture(scope="module")
def world():
    made = World(1)
    recipe = mrgp.MRDGP(target=("monitor", "pm25"), kernel_base=mrgp.RBF(), samples=10)
    quick = mrgp.LBFGS(max_steps=60, starts=1, candidates=0)
    return made, mrgp.fit(recipe, made.data(), optimiser=quick)


TRUTHS = {
    ("monitor", "pm25"): "pm25",
    ("model", "pm25"): "model",
    ("satellite", "pm25"): "satellite",
    ("monitor", "pm10"): "pm10",
    ("model", "pm10"): "pm10",
}


@pytest.mark.parametrize("process", TRUTHS)
def test_every_source_and_task_is_predicted_with_honest_intervals(world, process):
    made, fit = world
    source, task = process
    start = np.linspace(0.2, EXTENT - 0.8, 100)
    at = mrgp.intervals(start, start + 0.3, inputs="day")
    noise = np.sqrt(fit.model.observation_noise(process))
    y = made.means(getattr(made, TRUTHS[process]), start, 0.3, noise)
    prediction = mrgp.predict(fit, at, task=task, source=source, noise=True)
    scores = mrgp.evaluate(prediction, y)
    assert 0.88 <= scores["coverage_95"] <= 0.99
    assert scores["rmse"] < 0.35 * np.std(y)


def test_the_experts_of_the_target_are_its_sources_and_the_other_task(world):
    _, fit = world
    prediction = mrgp.predict(fit, mrgp.points([[4.0], [12.0]]), task="pm25")
    assert list(prediction.experts) == ["monitor", "satellite", "model", "pm10"]
    np.testing.assert_allclose(np.sum(list(prediction.weights.values()), 0), 1.0)
    assert prediction.weights["monitor"][0] > prediction.weights["monitor"][1]
    other = mrgp.predict(fit, mrgp.points([[4.0]]), task="pm10")
    assert set(other.experts) == {"monitor", "model"}
