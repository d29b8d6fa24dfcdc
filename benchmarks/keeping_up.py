"""A month of a network fitted along time, and what one more hour costs.

The field is simulated: common, smooth and local parts, noise, and a twentieth of the values
missing. Then come hours with other numbers of values, a new site, and forecasts. Prints its
measurements as JSON; `run.py` runs it with the right environment.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mrgp

INPUTS = ("time", "east", "north")
SITES, HOURS, AHEAD = 60, 720, 24
QUICK = (8, 48)
MOST_SHARE, MOST_DIFFERENCE = 0.01, 1e-8


def network(sites: int, hours: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places, and values by hour and place, NaN where they are missing."""
    rng = np.random.default_rng(0)
    places = rng.uniform(0.0, 40.0, (sites, 2))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    smooth = np.linalg.cholesky(np.exp(-apart / 15.0) + 1e-9 * np.eye(sites))

    def waves(lengthscale: float, columns: int) -> np.ndarray:
        keep = np.exp(-1.0 / lengthscale)
        found = rng.standard_normal((hours, columns))
        for t in range(1, hours):
            found[t] = keep * found[t - 1] + np.sqrt(1.0 - keep**2) * found[t]
        return found

    y = 30.0 + 8.0 * waves(24.0, 1) + 5.0 * waves(12.0, sites) @ smooth.T
    y = y + 4.0 * waves(3.0, sites) + 6.0 * waves(2000.0, sites)
    y = y + 2.0 * rng.standard_normal(y.shape)
    return places, np.where(rng.uniform(size=y.shape) < 0.05, np.nan, y)


def seen(places: np.ndarray, y: np.ndarray, first: float) -> mrgp.Dataset:
    """Return hourly values, from the hour `first` on."""
    x = np.array([[t, *place] for t in first + np.arange(len(y)) for place in places])
    support = mrgp.points(x, inputs=INPUTS)
    return mrgp.Dataset([mrgp.Observations(support, y.ravel(), name="sites")])


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call gives, and the seconds of processor time that it takes."""
    start = time.process_time()
    return call(), time.process_time() - start


def measure(sites: int, hours: int) -> dict[str, Any]:
    """Fit, and go on hour by hour."""
    places, y = network(sites + 1, hours + 4)
    old, month = places[:-1], seen(places[:-1], y[:hours, :-1], 0)
    recipe = mrgp.MRGP(method="markov")
    rows: dict[str, dict[str, float]] = {}
    fit, rows["fit"] = _row(lambda: mrgp.fit(recipe, month, progress=None))
    longer = fit
    for k, name in enumerate(("first hour", "second hour", "third hour")):
        hour = seen(old, y[hours + k : hours + k + 1, :-1], hours + k)
        longer, rows[name] = _row(lambda hour=hour, fit=longer: fit.extend(hour))
    for k, name in enumerate(("a value of a day ago", "another")):
        late = seen(old[k : k + 1], y[hours - 24 : hours - 23, k : k + 1], hours - 23.5)
        longer, rows[name] = _row(lambda late=late, fit=longer: fit.extend(late))
    new = seen(places[-1:], y[hours + 2 : hours + 3, -1:], hours + 2)
    longer, rows["a new site"] = _row(lambda: longer.extend(new))
    ahead = mrgp.points([[hours + 2.0 + t, *old[0]] for t in range(AHEAD)], inputs=INPUTS)
    soon, rows["forecast"] = _row(lambda: mrgp.predict(longer, ahead))
    every = longer.kept_data()
    again, rows["condition on all"] = _row(lambda: fit.condition(every))
    whole = mrgp.predict(again, ahead)
    differences = whole.mean - soon.mean, whole.variance - soon.variance
    apart, spread = np.abs(differences).max(), float(whole.variance.max())
    # The first hour compiles; the others are what a user who appends hour by hour waits for.
    share = rows["third hour"]["cpu seconds"] / rows["fit"]["cpu seconds"]
    wanted = [
        {"what": "one more hour", "unit": "of the fit", "measured": share, "most": MOST_SHARE},
        {
            "what": "difference to conditioning on all",
            "unit": "of the variance",
            "measured": float(apart) / spread,
            "most": MOST_DIFFERENCE,
        },
    ]
    sizes = {"sites": sites, "hours": hours, "values": int(fit.counts["sites", "value"][0])}
    return {"sizes": sizes, "rows": rows, "requirements": wanted}


def _row(call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    found, seconds = timed(call)
    return found, {"cpu seconds": seconds}


def main(arguments: list[str]) -> None:
    """Measure, at full size or a small one."""
    quick = "--quick" in arguments
    result = measure(*(QUICK if quick else (SITES, HOURS)))
    if quick:
        result["requirements"] = []
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
