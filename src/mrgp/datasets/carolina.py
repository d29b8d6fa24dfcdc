"""Counts in North Carolina's counties: sudden infant deaths, and rates that were made up."""

import json
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp.data import Dataset, Observations
from mrgp.datasets.cases import Case, Known, Recording, Simulation, check_name, data_file, hold_out
from mrgp.datasets.simulators import RandomFunction
from mrgp.likelihoods import Poisson
from mrgp.supports import Polygons, points, polygons, with_rows

FILE = "nc_sids/nc_sids.geojson"
DEGREE, LON, LAT = 111.2, -79.5, 35.5
INPUTS = ("east", "north")
SPACING = 10.0
HELD = 10
FOLDS, DRAWS, SEEDS = 10, 10, 100
WORLDS = ("simulated", "sids", "sids-later")
SMOOTH, SLOPE = 0.5, 0.6
SMOOTH_KM, COVARIATE_KM, POPULATION_KM = 100.0, 60.0, 40.0
PER = 1000.0
LATER = "1979-84"


def counts_draws(world: str = "simulated") -> tuple[str, ...]:
    """Return what a world of counts is repeated over: seeds, or folds of counties.

    >>> counts_draws()[7], counts_draws("sids")[11], counts_draws("sids-later")
    ('7', 'draw 1, fold 1', ('1979-84',))
    """
    check_name("counts", world, WORLDS, "world", "the worlds")
    if world == "simulated":
        return tuple(map(str, range(SEEDS)))
    if world == "sids-later":
        return (LATER,)
    return tuple(f"draw {draw}, fold {fold}" for draw in range(DRAWS) for fold in range(FOLDS))


def counts(draw: str, world: str = "simulated", mean: float = 7.0) -> Case:
    """Hold counts of North Carolina's counties out, or predict those of later years.

    `simulated`: cases of a known rate surface, exp(smooth + 0.6 x covariate) per 1000 births about
    a level of 2; births of a county are those of 1974-78, spread inside it as a made population
    is, and so many in all that counties have `mean` cases on average. Ten counties are held out.
    `fields` has the rates of pixels, the pieces that a grid of 10 km cuts counties into, and of all
    counties. `sids`: the sudden infant deaths of 1974 to 1978, a tenth of the counties held out,
    ten times ten; covariates are the share of non-white births and the county itself.
    `sids-later`: those of 1979 to 1984, from all counties of 1974-78. Exposure is births, in
    thousands.

    >>> import contextlib
    >>> with contextlib.suppress(FileNotFoundError):  # where the recorded data are missing
    ...     assert len(counts("0").y) == len(counts("draw 0, fold 3", "sids").y) == 10
    """
    check_name("counts", draw, counts_draws(world), f"draw of {world!r}", "those")
    table, shapes = _counties()
    plain = polygons(shapes, spacing=SPACING, inputs=INPUTS)
    if world == "simulated":
        births = table["births_1974_78"] * mean / table["sids_1974_78"].mean() / PER
        return _simulated(np.random.default_rng(int(draw)), plain, births, mean)
    first, second = (_period(plain, table, years) for years in ("1974_78", "1979_84"))
    if world == "sids-later":
        names = {"exposure": second.exposure}
        return Recording(Dataset([first]), second.support, second.y, *first.process, **names)
    which, place = (int(word.rstrip(",")) for word in draw.split()[1::2])
    order = np.random.default_rng(which).permutation(len(first))
    return hold_out(Dataset([first]), first.process, np.argsort(order) % FOLDS == place)


def _simulated(
    rng: np.random.Generator, plain: Polygons, births: Float[np.ndarray, " n"], mean: float
) -> Simulation:
    """Make a population, a covariate and rates up, and draw cases."""
    smooth, covariate, people = (
        RandomFunction(rng, np.full(2, scale)) for scale in (SMOOTH_KM, COVARIATE_KM, POPULATION_KM)
    )
    districts = plain.weighted(lambda x: np.exp(people(x)))
    x, weights = (np.asarray(part) for part in (districts.x, districts.weights))
    rate = np.exp(SMOOTH * smooth(x) + SLOPE * covariate(x))
    rate *= mean * len(births) / (births @ (weights * rate).sum(1))
    risk = (weights * rate).sum(1)
    seen = _cases(districts, rng.poisson(births * risk), births)
    data: Any = Dataset([seen]).with_covariates(covariate, "covariate")
    held = np.isin(np.arange(len(births)), rng.permutation(len(births))[:HELD])
    case = hold_out(data, seen.process, held)
    inside, (known,) = weights > 0, data.covariates
    fields = {
        "pixel": Known(known.extend(points(x[inside], inputs=INPUTS)), rate[inside]),
        "county": Known(known.extend(districts), risk),
    }
    about = {"target": case.target, "task": case.task, "exposure": case.exposure}
    return Simulation(case.data, case.support, case.y, **about, truth=risk[held], fields=fields)


def _period(plain: Polygons, table: dict[str, Any], years: str) -> Observations:
    births = table[f"births_{years}"]
    columns = {"share": table[f"nonwhite_births_{years}"] / births, "county": table["county"]}
    return _cases(with_rows(plain, columns), table[f"sids_{years}"], births / PER)


def _cases(support: Any, y: Any, births: Float[np.ndarray, " n"]) -> Observations:
    about = {"task": "cases", "name": "register", "units": "per 1000 births"}
    return Observations(support, y, likelihood=Poisson(), exposure=births, **about)


def _counties() -> tuple[dict[str, Any], list[Any]]:
    """Return the columns of the counties, and their outlines in kilometres."""
    from mrgp.supports.outlines import shapely

    features = json.loads(data_file(FILE).read_text())["features"]
    names = features[0]["properties"]
    table = {name: np.array([f["properties"][name] for f in features]) for name in names}
    degrees = shapely.from_geojson([json.dumps(f["geometry"]) for f in features])
    scale = DEGREE * np.array([np.cos(np.radians(LAT)), 1.0])
    shapes = shapely.transform(degrees, lambda x: (x - [LON, LAT]) * scale)
    return table, list(shapes)
