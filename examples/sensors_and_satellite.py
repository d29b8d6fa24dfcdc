"""Fuse sensors in a city centre with a satellite that covers the whole region and reads high."""

import matplotlib.pyplot as plt
import numpy as np
from _telling import Telling

import mrgp
from mrgp.plotting import plot_data, plot_map

story = Telling("sensors_and_satellite", __doc__)

# --8<-- [start:truth]
# A region of 24 by 24 km. NO2 falls off from a city, and a motorway crosses the north.
SIDE = 24.0


def truth(x):
    east, north = x[:, 0], x[:, 1]
    city = 22 * np.exp(-((east - 10) ** 2 + (north - 11) ** 2) / 50)
    motorway = 9 * np.exp(-((north - 18 - 0.15 * east) ** 2) / 8)
    return 12 + city + motorway


# --8<-- [end:truth]

# --8<-- [start:data]
rng = np.random.default_rng(5)
n, cell = (45, 4.0) if story.quick else (80, 3.0)

# Sensors stand where people live: around the centre, hardly any in the outskirts.
sites = np.clip(rng.normal([10, 11], 4.0, (n, 2)), 0.2, SIDE - 0.2)
reports = truth(sites) + rng.normal(0, 1.5, n)

# The satellite averages the field over cells, and reads 6 ug/m3 too high.
corner = np.arange(0.0, SIDE, cell)
lower = np.array([(east, north) for east in corner for north in corner])
inside = (np.arange(20) + 0.5) / 20 * cell
fine = np.array([(a, b) for a in inside for b in inside])
cell_means = np.array([truth(low + fine).mean() for low in lower])
column = cell_means + 6.0 + rng.normal(0, 1.0, len(lower))

# Every fourth sensor is held out: no model sees it.
held = np.arange(n) % 4 == 0
inputs = ("east", "north")
sensors = mrgp.Observations(
    mrgp.points(sites[~held], inputs=inputs),
    reports[~held],
    task="no2",
    name="sensors",
    units="ug/m3",
)
satellite = mrgp.Observations(
    mrgp.boxes(lower, lower + cell, inputs=inputs),
    column,
    task="no2",
    name="satellite",
    units="ug/m3",
)
data = mrgp.Dataset([sensors, satellite])
print(data)
# --8<-- [end:data]

# --8<-- [start:fit]
fits = {
    "both": mrgp.fit(mrgp.MRGP(bias="offset", target="sensors"), data),
    "sensors alone": mrgp.fit(mrgp.MRGP(), data.select(source="sensors")),
    "no offset": mrgp.fit(mrgp.MRGP(bias="none"), data),
}
print(fits["both"].summary())
# --8<-- [end:fit]

# --8<-- [start:score]
# The map: a grid of points, scored against the truth, in the centre and outside it.
ticks = np.linspace(0.5, SIDE - 0.5, 24)
grid = mrgp.points(np.array([(a, b) for a in ticks for b in ticks]), inputs=inputs)
known = truth(grid.x)
centre = np.hypot(grid.x[:, 0] - 10, grid.x[:, 1] - 11) < 8

maps = {name: mrgp.predict(fit, grid) for name, fit in fits.items()}
scores = {name: mrgp.evaluate(pred, known) for name, pred in maps.items()}
where = (lower[None] <= grid.x[:, None]).all(-1) & (grid.x[:, None] < lower[None] + cell).all(-1)
painted = column[where.argmax(1)]  # the naive map: the value of the cell, as it is

print(f"\n{'map of':16}{'rmse':>8}{'centre':>8}{'outside':>9}{'coverage_95':>13}")
for name, pred in maps.items():
    error = pred.mean - known
    rmse, near, far = (np.sqrt(np.mean(e**2)) for e in (error, error[centre], error[~centre]))
    print(f"{name:16}{rmse:8.2f}{near:8.2f}{far:9.2f}{scores[name]['coverage_95']:13.2f}")
naive = np.sqrt(np.mean((painted - known) ** 2))
print(f"{'cells, painted':16}{naive:8.2f}")
# --8<-- [end:score]

# --8<-- [start:held]
# The check that works without a truth: sensors held out, predicted as measurements, noise included.
at_held = mrgp.predict(
    fits["both"], mrgp.points(sites[held], inputs=inputs), source="sensors", noise=True
)
check = mrgp.evaluate(at_held, reports[held])
print(f"\n{held.sum()} sensors held out: rmse {check['rmse']:.2f}, ", end="")
print(f"coverage_95 {check['coverage_95']:.2f}")
offset = float(fits["both"].parameters()["offset[satellite]"])
print(f"offset of the satellite: {offset:.2f} ug/m3")
# --8<-- [end:held]

# --8<-- [start:use]
# Any region can be asked for: the north-western quarter as a whole, and where 30 is exceeded.
quarter = mrgp.predict(fits["both"], mrgp.boxes([[0.0, 12.0]], [[12.0, 24.0]], inputs=inputs))
low, high = quarter.interval(0.95)
print(f"mean of the north-west: {quarter.mean[0]:.1f} ug/m3, {low[0]:.1f} to {high[0]:.1f}")
print(f"surely above 30 ug/m3: {np.mean(maps['both'].exceedance(30.0) > 0.95):.1%} of the region")
# --8<-- [end:use]

# --8<-- [start:explore]
# In a notebook: maps of mean and sd to point at, drawn without a network.
maps["both"].explore(data)
# --8<-- [end:explore]

figure, axes = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
span = (10.0, 42.0)
no2 = {"label": "no2 (ug/m3)", "limits": span}
plot_data(axes[0, 0], data, title="What is seen: sensors and cells", **no2)
plot_map(axes[0, 1], grid, known, title="Truth", **no2)
plot_map(axes[0, 2], grid, maps["both"].mean, title="Both sources", **no2)
plot_map(axes[1, 0], grid, maps["sensors alone"].mean, title="Sensors alone", **no2)
sd = {"label": "sd (ug/m3)", "limits": (0.0, 6.0), "colours": "cividis"}
plot_map(axes[1, 1], grid, maps["sensors alone"].std, title="Sensors alone: sd", **sd)
plot_map(axes[1, 2], grid, maps["both"].std, title="Both sources: sd", **sd)
story.picture(figure)

story.figures(
    rmse_both=scores["both"]["rmse"],
    rmse_sensors_alone=scores["sensors alone"]["rmse"],
    rmse_no_offset=scores["no offset"]["rmse"],
    rmse_painted=naive,
    coverage_both=scores["both"]["coverage_95"],
    coverage_no_offset=scores["no offset"]["coverage_95"],
    coverage_held=check["coverage_95"],
    offset=offset,
)
