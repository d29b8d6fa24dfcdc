"""Simulated worlds with a known truth: the paper's synthetic experiments and a demo city."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mrgp.data import Dataset, Observations
from mrgp.datasets.cases import Simulation
from mrgp.supports import Support, boxes, intervals, nodes, points
from mrgp.supports.quadrature import mesh

Rng = np.random.Generator
Values = Float[np.ndarray, " n"]


def _simulated(
    rng: Rng,
    data: Iterable[Observations],
    support: Support,
    truth: Values,
    noise: float,
    target: str,
    task: str = "y",
) -> Simulation:
    """Return data with the truth on a test support, and with fresh noise on it."""
    fresh = truth + noise * rng.standard_normal(len(truth))
    return Simulation(Dataset(data), support, fresh, target, task, truth=truth)


def _line(x: Values) -> Support:
    """Return points of one input."""
    return points(x[:, None])


def dependent(seed: int, noise: float = 0.5, independent: bool = False) -> Simulation:
    """Simulate a fine source and a coarse one that averages it in threes.

    y1 = 5 sin^2(x) + noise at 100 points evenly on [-2, 15]; y2 are means of consecutive triples
    of y1 itself, so the two share their errors. With `independent=True` the coarse source averages
    the noise-free function and has noise of its own, of the same variance.

    >>> len(dependent(0).data["coarse"])
    33
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(-2.0, 15.0, 100)
    clean = _wave(x)
    y1 = clean + noise * rng.standard_normal(100)
    triples = x[:99].reshape(33, 3)
    y2 = y1[:99].reshape(33, 3).mean(1)
    if independent:
        y2 = clean[:99].reshape(33, 3).mean(1) + noise / np.sqrt(3) * rng.standard_normal(33)
    fine = Observations(_line(x), y1, task="y", name="fine")
    coarse = Observations(nodes(triples[:, :, None]), y2, task="y", name="coarse")
    test = np.linspace(-2.0, 15.0, 500)
    return _simulated(rng, [fine, coarse], _line(test), _wave(test), noise, "fine")


def mcmc_dependent(seed: int, noise: float = 1.0, own: float = 0.1) -> Simulation:
    """Simulate a fine source and a coarse one that averages it in pairs, with noise of its own.

    y1 = 5 sin^2(x) + noise at 100 points evenly on [-2, 15]; y2 are means of consecutive pairs of
    y1 itself, plus noise `own`. The test support is the points of y1.

    >>> len(mcmc_dependent(0).data["coarse"])
    50
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(-2.0, 15.0, 100)
    truth = _wave(x)
    y1 = truth + noise * rng.standard_normal(100)
    y2 = y1.reshape(50, 2).mean(1) + own * rng.standard_normal(50)
    fine = Observations(_line(x), y1, task="y", name="fine")
    coarse = Observations(nodes(x.reshape(50, 2, 1)), y2, task="y", name="coarse")
    return _simulated(rng, [fine, coarse], _line(x), truth, noise, "fine")


MAP_CELL = 3.0
MAP_CELLS = 4
MAP_DAYS = 4


def dependent_map(seed: int, noise: float = 0.5, independent: bool = False) -> Simulation:
    """Simulate sites, and a gridded product made from their reports, over space and time.

    Four sites in each of 4 x 4 cells of 3 km report a smooth field on 4 days, with noise. `cells`
    has the mean of the reports in each cell and day, errors included, as boxes. With
    `independent=True` it has the mean of the noise-free values, with noise of its own, of the same
    variance. The test support is 400 places at any time.

    >>> len(dependent_map(0).data["cells"])
    64
    """
    rng = np.random.default_rng(seed)
    field = RandomFunction(rng, np.array([5.0, 5.0, 3.0]))
    corners = MAP_CELL * np.stack(np.meshgrid(*[np.arange(MAP_CELLS)] * 2), -1).reshape(-1, 1, 2)
    quarters = np.array([[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]])
    sites = corners + MAP_CELL * (quarters + rng.uniform(-0.15, 0.15, (len(corners), 4, 2)))
    days = np.arange(float(MAP_DAYS))
    x = np.concatenate([np.insert(sites, 2, day, axis=2) for day in days])
    clean = 3.0 * field(x)
    y = clean + noise * rng.standard_normal(clean.shape)
    means = y.mean(1)
    if independent:
        means = clean.mean(1) + noise / 2 * rng.standard_normal(len(clean))
    lower = np.concatenate([np.insert(corners[:, 0], 2, day, axis=1) for day in days])
    upper = lower + np.array([MAP_CELL, MAP_CELL, 0.0])
    names = ("east", "north", "day")
    sources = [
        Observations(points(x.reshape(-1, 3), inputs=names), y.ravel(), name="sites"),
        Observations(boxes(lower, upper, inputs=names), means, name="cells"),
    ]
    extent = np.array([MAP_CELL * MAP_CELLS, MAP_CELL * MAP_CELLS, MAP_DAYS - 1.0])
    test = rng.uniform(0.0, 1.0, (400, 3)) * extent
    places = points(test, inputs=names)
    return _simulated(rng, sources, places, 3.0 * field(test), noise, "sites", "value")


def biased(seed: int, low: float = 7.0, high: float = 12.0) -> Simulation:
    """Simulate a target seen in the middle alone, and two coarse sources on another scale.

    All see s (5 sin^2(x) + 0.1 e): the target at 50 points evenly on [low, high] with s = 1, `left`
    as means of 20 bags of 5 of 100 points evenly on [-10, 10] with s = 0.5, `right` as means of as
    many on [10, 20] with s = 0.3. Noise enters before scaling and averaging. The test support has
    200 points evenly on [-10, 20].

    >>> biased(0).data.sources
    ('target', 'left', 'right')
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(low, high, 50)
    sources = [Observations(_line(x), _noisy_wave(x, rng), task="y", name="target")]
    for name, first, last, scale in (("left", -10.0, 10.0, 0.5), ("right", 10.0, 20.0, 0.3)):
        bags = np.linspace(first, last, 100)
        means = scale * _noisy_wave(bags, rng).reshape(20, 5).mean(1)
        support = nodes(bags.reshape(20, 5, 1))
        sources.append(Observations(support, means, task="y", name=name))
    test = np.linspace(-10.0, 20.0, 200)
    return _simulated(rng, sources, _line(test), _wave(test), 0.1, "target")


BIASES: dict[str, Callable[[Any, Any], Any]] = {
    "offset": lambda f, _: f + 2.0,
    "saturating": lambda f, _: 2.0 * np.tanh(0.7 * f),
    "drifting": lambda f, x: (0.4 + 0.08 * x) * f + 1.5 * np.sin(0.3 * x),
}
BIASES_EXTENT = 20.0


def biases(seed: int, kind: str = "offset") -> Simulation:
    """Simulate a sparse target, and a coarse source whose bias is more than a scale.

    The truth f is a random function of x on [0, 20]. The target has 30 noisy values at places of
    its own; `coarse` has means of g(f, x) over 40 intervals of 0.5, g being f + 2 ("offset"),
    2 tanh(0.7 f) ("saturating") or (0.4 + 0.08 x) f + 1.5 sin(0.3 x) ("drifting"). The test support
    has 200 points evenly on [0, 20].

    >>> biases(0, "saturating").data.sources
    ('target', 'coarse')
    """
    if kind not in BIASES:
        raise ValueError(f"biases: kind= is one of {tuple(BIASES)}; got {kind!r}.")
    rng = np.random.default_rng(seed)
    field = RandomFunction(rng, 1.0)

    def truth(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        return 1.5 * field(x)

    x = np.sort(rng.uniform(0, BIASES_EXTENT, 30))
    y = truth(x) + 0.1 * rng.standard_normal(30)
    lower = np.arange(0.0, BIASES_EXTENT, 0.5)
    inside = lower[:, None] + 0.5 * (np.arange(20) + 0.5) / 20
    means = BIASES[kind](truth(inside), inside).mean(1) + 0.03 * rng.standard_normal(len(lower))
    sources = [
        Observations(_line(x), y, task="y", name="target"),
        Observations(intervals(lower, lower + 0.5), means, task="y", name="coarse"),
    ]
    test = np.linspace(0.0, BIASES_EXTENT, 200)
    return _simulated(rng, sources, _line(test), truth(test), 0.1, "target")


MIXING_EXTENT = 12.0


def mixing(seed: int) -> Simulation:
    """Simulate two tasks that share a function, in proportions that change along x.

    Task p is c_p exp(0.7 w_p(x)) f(x), with a rough f and slow w_p, c = 1 for `a` and 3 for `b`.
    `a` is seen at 120 points on [0, 12]; `b` at those of 120 points outside four gaps of 1.3, and
    everywhere as means over intervals of 1.5. The test support is the gaps, for `b`.

    >>> mixing(0).data.tasks
    ('a', 'b')
    """
    rng = np.random.default_rng(seed)
    shared, slow = RandomFunction(rng, 0.5), [RandomFunction(rng, 3.0) for _ in range(2)]

    def task(p: int, x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        return (1.0, 3.0)[p] * np.exp(0.7 * slow[p](x)) * shared(x)

    x = np.sort(rng.uniform(0, MIXING_EXTENT, (2, 120)))
    y = [task(p, x[p]) + (0.1, 0.3)[p] * rng.standard_normal(120) for p in range(2)]
    seen = ~_in_gap(x[1])
    lower = np.arange(0.0, MIXING_EXTENT, 1.5)
    inside = lower[:, None] + (np.arange(30) + 0.5) / 20
    means = task(1, inside).mean(1) + 0.1 * rng.standard_normal(len(lower))
    sources = [
        Observations(_line(x[0]), y[0], task="a", name="sites"),
        Observations(_line(x[1][seen]), y[1][seen], task="b", name="sites"),
        Observations(intervals(lower, lower + 1.5), means, task="b", name="cells"),
    ]
    test = np.linspace(0, MIXING_EXTENT, 241)
    test = test[_in_gap(test)]
    return _simulated(rng, sources, _line(test), task(1, test), 0.3, "sites", "b")


def _in_gap(x: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    return x % 3.0 >= 1.7


class RandomFunction:
    """A draw of a GP with an RBF kernel of unit variance, by random Fourier features.

    With several lengthscales, the inputs are along the last axis of its argument.
    """

    def __init__(self, rng: Rng, lengthscale: float | Values, features: int = 200):
        shape = (features, *np.shape(lengthscale))
        self.frequency = rng.standard_normal(shape) / lengthscale
        self.phase = rng.uniform(0, 2 * np.pi, features)

    def __call__(self, x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        several = self.frequency.ndim > 1
        angle = x @ self.frequency.T if several else np.multiply.outer(x, self.frequency)
        waves = np.cos(angle + self.phase)
        return np.sqrt(2 / len(self.phase)) * waves.sum(-1)


def _wave(x: Values) -> Values:
    return 5.0 * np.sin(x) ** 2


def _noisy_wave(x: Values, rng: Rng) -> Values:
    return _wave(x) + 0.1 * rng.standard_normal(len(x))


CITY_SIDE = 20.0
CITY_GRID = 60


def city(seed: int = 0, sensors: int = 50, cells: int = 5, noise: float = 1.5) -> Simulation:
    """Simulate a city's pollution as roadside sensors and a coarse satellite see it.

    The truth is a background that falls away from the centre, two busy roads, and smooth variation,
    in ug/m3 over 20 x 20 km. Sensors are points, denser in the centre; the satellite reports the
    mean of each of `cells` x `cells` squares. The test support is a fine grid.

    >>> city().data.sources
    ('sensors', 'satellite')
    """
    rng = np.random.default_rng(seed)
    field = _CityField(rng)
    centre = CITY_SIDE / 2
    radius = CITY_SIDE * 0.55 * np.sqrt(rng.uniform(size=sensors)) ** 1.3
    angle = rng.uniform(0, 2 * np.pi, sensors)
    ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    places = np.clip(centre + radius[:, None] * ring, 0.3, CITY_SIDE - 0.3)
    y = field(places) + noise * rng.standard_normal(sensors)
    side = CITY_SIDE / cells
    lower = mesh(*[side * np.arange(cells)] * 2)
    offsets = mesh(*[side * (np.arange(20) + 0.5) / 20] * 2)
    z = field(lower[:, None] + offsets).mean(1) + 0.5 * rng.standard_normal(len(lower))
    names, about = ("east", "north"), {"task": "no2", "units": "ug/m3"}
    squares = boxes(lower, lower + side, inputs=names)
    sources = [
        Observations(points(places, inputs=names), y, name="sensors", **about),
        Observations(squares, z, name="satellite", **about),
    ]
    test = mesh(*[(np.arange(CITY_GRID) + 0.5) / CITY_GRID * CITY_SIDE] * 2)
    fine = points(test, inputs=names)
    return _simulated(rng, sources, fine, field(test), noise, "sensors", "no2")


class _CityField:
    """A smooth random field plus an urban dome and two roads, at any places."""

    def __init__(self, rng: Rng):
        self.smooth = RandomFunction(rng, np.array([2.5, 2.5]))
        self.road = rng.uniform(0.35, 0.65, 2) * CITY_SIDE
        self.slope = rng.uniform(-0.25, 0.25, 2)

    def __call__(self, x: Float[np.ndarray, "*n 2"]) -> Float[np.ndarray, "*n"]:
        east, north = x[..., 0], x[..., 1]
        distance = np.hypot(east - CITY_SIDE / 2, north - CITY_SIDE / 2)
        dome = 12.0 * np.exp(-0.5 * (distance / 5.0) ** 2)
        first = north - self.road[0] - self.slope[0] * (east - CITY_SIDE / 2)
        second = east - self.road[1] - self.slope[1] * (north - CITY_SIDE / 2)
        roads = 8.0 * (np.exp(-0.5 * (first / 1.2) ** 2) + np.exp(-0.5 * (second / 1.2) ** 2))
        return 20.0 + dome + roads + 4.0 * self.smooth(x)


WRONG = ("none", "isolated", "stuck", "tenfold")
WRONG_SHARE, WRONG_SPREADS = 0.03, 10.0
DAY = 24


def outliers(
    seed: int, wrong: str = "isolated", sensors: int = 16, days: int = 2, noise: float = 1.0
) -> Simulation:
    """Simulate sensors of the demo city hour by hour, some of whose values are wrong.

    `wrong` is "isolated" (3 % of the values, each ten standard deviations of all values away),
    "stuck" (the first sensor repeats one value for a day), "tenfold" (the first sensor reports ten
    times what it sees) or "none". The background has a daily cycle. The test support is 400 places
    and times.

    >>> world = outliers(0, "stuck")
    >>> len(np.unique(world.data["sensors"].y[12:36]))
    1
    """
    if wrong not in WRONG:
        raise ValueError(f"outliers: wrong= is one of {WRONG}; got {wrong!r}.")
    rng = np.random.default_rng(seed)
    field, slow = _CityField(rng), RandomFunction(rng, 8.0)

    def truth(x: Float[np.ndarray, "n 3"]) -> Values:
        cycle = 1.0 + 0.3 * np.sin(2 * np.pi * (x[:, 2] - 9.0) / DAY)
        return field(x[:, :2]) * cycle + 3.0 * slow(x[:, 2])

    hours = days * DAY
    places = rng.uniform(0.3, CITY_SIDE - 0.3, (sensors, 2))
    x = np.column_stack([np.repeat(places, hours, 0), np.tile(np.arange(float(hours)), sensors)])
    y = truth(x) + noise * rng.standard_normal(len(x))
    test = rng.uniform(0.0, 1.0, (400, 3)) * [CITY_SIDE, CITY_SIDE, hours - 1.0]
    if wrong == "isolated":
        chosen = rng.permutation(len(y))[: round(WRONG_SHARE * len(y))]
        y[chosen] += WRONG_SPREADS * y.std() * rng.choice([-1.0, 1.0], len(chosen))
    elif wrong == "stuck":
        y[DAY // 2 : DAY // 2 + DAY] = y[DAY // 2]
    elif wrong == "tenfold":
        y[:hours] *= 10.0
    names = ("east", "north", "hour")
    seen = Observations(points(x, inputs=names), y, task="no2", name="sensors", units="ug/m3")
    places = points(test, inputs=names)
    return _simulated(rng, [seen], places, truth(test), noise, "sensors", "no2")


def scaling(
    seed: int, values: int = 1000, nodes_each: int = 9, tasks: int = 1, hours: int = 24
) -> Simulation:
    """Simulate sensors and coarse cells over a city and some hours, in any numbers.

    Every task has `values` values in all, half of them points and half means over cells of
    `nodes_each` nodes; tasks are multiples of one smooth field over x, y and t. The test support is
    2000 points.

    >>> [len(o) for o in scaling(0, values=100, tasks=2).data]
    [50, 50, 50, 50]
    """
    rng = np.random.default_rng(seed)
    extent = np.array([10.0, 10.0, float(hours)])
    waves = rng.standard_normal((3, 40)) / np.array([3.0, 3.0, 8.0])[:, None]
    phases = rng.uniform(0.0, 2 * np.pi, 40)

    def field(x: Float[np.ndarray, "... d"]) -> Float[np.ndarray, "..."]:
        return np.sqrt(2 / 40) * np.cos(x @ waves + phases).sum(-1)

    names, found = ("x", "y", "t"), []
    spread = np.array([1.0, 1.0, 0.0])
    for p in range(tasks):
        places = rng.uniform(0.0, 1.0, (values // 2, 3)) * extent
        y = (p + 1) * field(places) + 0.1 * rng.standard_normal(len(places))
        found.append(Observations(points(places, inputs=names), y, task=f"t{p}", name="sensors"))
        middle = rng.uniform(0.0, 1.0, (values - values // 2, 1, 3)) * extent
        inside = middle + spread * rng.uniform(-1.0, 1.0, (len(middle), nodes_each, 3))
        means = (p + 1) * field(inside).mean(1) + 0.05 * rng.standard_normal(len(inside))
        found.append(Observations(nodes(inside, inputs=names), means, task=f"t{p}", name="cells"))
    test = rng.uniform(0.0, 1.0, (2000, 3)) * extent
    places = points(test, inputs=names)
    return _simulated(rng, found, places, field(test), 0.1, "sensors", "t0")
