"""Correct a model that saturates, with the help of sensors in one half of its domain."""

import matplotlib.pyplot as plt
import numpy as np
from _telling import Telling

import mrgp
from mrgp.plotting import plot_bias_map, plot_map

story = Telling("biased_model_output", __doc__)

# --8<-- [start:truth]
# Ozone over 20 by 20 km: hills and hollows of a few kilometres.
rng = np.random.default_rng(11)
SIDE = 20.0
waves = rng.normal(0, 0.3, (2, 12))
turns = rng.uniform(0, 2 * np.pi, 12)


def truth(x):
    return 60 + 24 * np.sqrt(2 / 12) * np.cos(x @ waves + turns).sum(-1)


def chemistry(o3):
    """What the chemistry model makes of it: too low, and level where ozone is high."""
    return 20 + 45 * np.tanh((o3 - 20) / 55)


# --8<-- [end:truth]

# --8<-- [start:data]
# The model covers everything in cells. Sensors are few, and stand in the western half.
cell, n = (2.5, 40) if story.quick else (2.0, 60)
corner = np.arange(0.0, SIDE, cell)
lower = np.array([(a, b) for a in corner for b in corner])
inside = (np.arange(10) + 0.5) / 10 * cell
fine = np.array([(a, b) for a in inside for b in inside])
cells = np.array([chemistry(truth(low + fine)).mean() for low in lower])

sites = rng.uniform([0, 0], [SIDE / 2, SIDE], (n, 2))
reports = truth(sites) + rng.normal(0, 2.0, n)

inputs, about = ("east", "north"), {"task": "o3", "units": "ug/m3"}
sensors = mrgp.Observations(mrgp.points(sites, inputs=inputs), reports, name="sensors", **about)
model = mrgp.Observations(
    mrgp.boxes(lower, lower + cell, inputs=inputs), cells, name="model", **about
)
data = mrgp.Dataset([sensors, model])
print(data)
# --8<-- [end:data]

# --8<-- [start:fit]
recipes = {
    "sensors alone": (mrgp.MRGP(), data.select(source="sensors")),
    "a line": (mrgp.MRGP(bias="affine", target="sensors"), data),
    "a map": (mrgp.MRDGP(target="sensors"), data),
}
fits = {name: mrgp.fit(recipe, seen) for name, (recipe, seen) in recipes.items()}
print(fits["a map"].summary())
# --8<-- [end:fit]

# --8<-- [start:score]
ticks = np.linspace(0.5, SIDE - 0.5, 20)
grid = mrgp.points(np.array([(a, b) for a in ticks for b in ticks]), inputs=inputs)
known, east = truth(grid.x), grid.x[:, 0] > SIDE / 2
where = (lower[None] <= grid.x[:, None]).all(-1) & (grid.x[:, None] < lower[None] + cell).all(-1)
raw = cells[where.argmax(1)]

maps = {name: mrgp.predict(fit, grid) for name, fit in fits.items()}
means = {"raw model": raw, **{name: pred.mean for name, pred in maps.items()}}
print(f"\n{'rmse':16}{'west':>7}{'east':>7}{'  east, above 80':>16}{'  coverage_95, east':>19}")
figures = {}
for name, mean in means.items():
    parts = (~east, east, east & (known > 80))
    west_rmse, east_rmse, high = (np.sqrt(np.mean((mean - known)[p] ** 2)) for p in parts)
    figures[name] = east_rmse
    words = ""
    if name in maps:
        low, up = maps[name].interval(0.95)
        figures[f"coverage {name}"] = np.mean(((low <= known) & (known <= up))[east])
        words = f"{figures[f'coverage {name}']:19.2f}"
    print(f"{name:16}{west_rmse:7.2f}{east_rmse:7.2f}{high:16.2f}{words}")
# --8<-- [end:score]

# --8<-- [start:bias]
# The learned map against the one that made the data, where the model has values.
found = fits["a map"].bias_map("model")
true_map = 20 + 55 * np.arctanh(np.clip((found.values - 20) / 45, -0.98, 0.98))
low, high = found.interval(0.95)
share = np.mean((low <= true_map) & (true_map <= high))
print(f"\nthe map at a model value of 55: {np.interp(55, found.values, found.mean):.1f}")
print(f"the true one there: {20 + 55 * np.arctanh(35 / 45):.1f}")
print(f"inside the map's 95 % interval: {share:.0%} of its length")
weight = maps["a map"].weights
told = next(value for name, value in weight.items() if "model" in str(name))
print(f"weight of the model's expert: west {told[~east].mean():.2f}, east {told[east].mean():.2f}")
# --8<-- [end:bias]

figure, axes = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
o3 = {"label": "o3 (ug/m3)", "limits": (known.min(), known.max())}
panels = {"Truth": known, "Raw model": raw, "A map (MRDGP)": maps["a map"].mean}
for panel, (title, values) in zip(axes[0], panels.items(), strict=True):
    plot_map(panel, grid, values, title=title, **o3)
axes[0, 0].plot(*sites.T, "k.", markersize=4)
wrong = {"label": "error (ug/m3)", "limits": (-25.0, 25.0), "colours": "RdBu_r"}
plot_map(axes[1, 0], grid, maps["a line"].mean - known, title="A line: error", **wrong)
plot_map(axes[1, 1], grid, maps["a map"].mean - known, title="A map: error", **wrong)
plot_bias_map(found, axes[1, 2])
axes[1, 2].plot(found.values, true_map, color="black", linestyle=":", label="true map")
axes[1, 2].legend(frameon=False)
story.picture(figure)

story.figures(
    rmse_raw=figures["raw model"],
    rmse_alone=figures["sensors alone"],
    rmse_line=figures["a line"],
    rmse_map=figures["a map"],
    coverage_line=figures["coverage a line"],
    coverage_map=figures["coverage a map"],
)
