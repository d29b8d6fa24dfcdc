"""Bring rates of districts to a fine grid, with population as weights and traffic as covariate."""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from _telling import Telling
from shapely import Point, Polygon, contains_xy

import mrgp
from mrgp.plotting import plot_map

story = Telling("polygons_to_pixels", __doc__)

# --8<-- [start:known]
# Two known grids over 18 by 18 km: traffic, and the people in each square kilometre.
SIDE = 18.0
rng = np.random.default_rng(4)
axis = np.arange(0.25, SIDE, 0.5)
east, north = np.meshgrid(axis, axis)


def grid_of(values, name):
    return xr.DataArray(values, {"north": axis, "east": axis}, ("north", "east"), name)


roads = sum(
    np.exp(-((np.cos(a) * (east - 9) + np.sin(a) * (north - 9) - c) ** 2) / 0.8)
    for a, c in ((0.3, -3.0), (1.7, 2.0), (2.6, 1.0), (0.9, 5.0))
)
towns = sum(
    s * np.exp(-((east - a) ** 2 + (north - b) ** 2) / 3)
    for a, b, s in ((5, 6, 1.0), (12, 11, 1.6), (14, 4, 0.7), (4, 14, 0.9))
)
traffic = grid_of(roads + 0.6 * towns, "traffic")
people = grid_of(800 + 6000 * towns + 2000 * roads * towns, "people")
# --8<-- [end:known]

# --8<-- [start:truth]
# Asthma admissions per 1000 people: more beside traffic, and something unknown that varies slowly.
rate = 6 + 2.5 * traffic + 1.5 * np.sin(0.35 * east) * np.cos(0.3 * north)


def in_district(shape):
    """Return the true rate of a district, over its people, and how many they are."""
    inside = contains_xy(shape, east.ravel(), north.ravel())
    heads = people.values.ravel()[inside] * 0.25
    return np.sum(rate.values.ravel()[inside] * heads) / heads.sum(), heads.sum()


# --8<-- [end:truth]

# --8<-- [start:data]
# Districts: a net of quadrilaterals with crooked corners. Each reports one rate.
m, spacing = (6, 0.9) if story.quick else (8, 0.5)
corners = np.stack(np.meshgrid(*[np.linspace(0, SIDE, m + 1)] * 2, indexing="ij"), -1)
corners[1:-1, 1:-1] += rng.uniform(-0.3, 0.3, (m - 1, m - 1, 2)) * SIDE / m
shapes = [
    Polygon([corners[i, j], corners[i + 1, j], corners[i + 1, j + 1], corners[i, j + 1]])
    for i in range(m)
    for j in range(m)
]
rates, heads = (np.array(v) for v in zip(*(in_district(s) for s in shapes), strict=True))
variance = 1000 * rates / heads  # of a rate per 1000, from counting cases
reports = rates + rng.normal(0, np.sqrt(variance))

inputs = ("east", "north")
plain = mrgp.polygons(shapes, spacing=spacing, inputs=inputs)
about = {"task": "asthma", "name": "districts", "units": "per 1000", "noise_variance": variance}
by_area = mrgp.Dataset([mrgp.Observations(plain, reports, **about)])
by_people = mrgp.Dataset([mrgp.Observations(plain.weighted(people), reports, **about)])
print(by_people)
# --8<-- [end:data]

# --8<-- [start:fit]
space = mrgp.Matern32(dims=inputs, product=True)
plain_model = mrgp.MRGP(space, method="exact")
model = mrgp.MRGP(space + mrgp.Linear(dims="traffic"), method="exact")
fits = {
    "places alone": mrgp.fit(plain_model, by_people),
    "traffic, by area": mrgp.fit(model, by_area.with_covariates(traffic)),
    "traffic, by people": mrgp.fit(model, by_people.with_covariates(traffic)),
}
best = fits["traffic, by people"]
print(best.summary())
# --8<-- [end:fit]

# --8<-- [start:score]
pixels = mrgp.points(np.column_stack([east.ravel(), north.ravel()]), inputs=inputs)
known = rate.values.ravel()
maps = {name: mrgp.predict(fit, pixels) for name, fit in fits.items()}
scores = {name: mrgp.evaluate(pred, known) for name, pred in maps.items()}
district = np.array([contains_xy(shape, *pixels.x.T) for shape in shapes]).argmax(0)
painted = reports[district]
scores["districts, painted"] = {"rmse": np.sqrt(np.mean((painted - known) ** 2))}

print(f"\n{'pixels':20}{'rmse':>7}{'mean error':>12}{'coverage_95':>13}")
for name, s in scores.items():
    off = np.mean((maps[name].mean if name in maps else painted) - known)
    more = f"{s['coverage_95']:13.2f}" if "coverage_95" in s else ""
    print(f"{name:20}{s['rmse']:7.2f}{off:12.2f}{more}")
# --8<-- [end:score]

# --8<-- [start:check]
# Without a truth: each district from all the others.
print()
for name, fit in fits.items():
    loo = fit.leave_one_out().scores()["districts"]
    print(f"{name:20} each district from the others: rmse {loo['rmse']:.2f}")
# --8<-- [end:check]

# --8<-- [start:catchment]
# A hospital's catchment cuts through districts. How many admissions will it see?
hospital = Point(9, 9).buffer(4.0)
catchment = mrgp.polygons([hospital], spacing=0.5, inputs=inputs, kind="sum", weights=people)
cases = mrgp.predict(best, catchment)
low, high = (side[0] / 1000 for side in cases.interval(0.95))
true_rate, served = in_district(hospital)
print(
    f"\nadmissions in the catchment: {cases.mean[0] / 1000:.0f} ({low:.0f} to {high:.0f}), ", end=""
)
print(f"truth {true_rate * served / 1000:.0f}")
# --8<-- [end:catchment]

figure, axes = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
span = {"label": "admissions per 1000", "limits": (4.0, 14.0)}
plot_map(axes[0, 0], pixels, traffic.values.ravel(), title="Traffic, known", colours="cividis")
plot_map(axes[0, 1], pixels, painted, title="Districts, painted", **span)
plot_map(axes[0, 2], pixels, known, title="Truth", **span)
plot_map(axes[1, 0], pixels, maps["places alone"].mean, title="Places alone", **span)
plot_map(axes[1, 1], pixels, maps["traffic, by area"].mean, title="Traffic, by area", **span)
plot_map(axes[1, 2], pixels, maps["traffic, by people"].mean, title="Traffic, by people", **span)
for panel in axes.flat[1:3]:
    for shape in shapes:
        panel.plot(*shape.exterior.xy, color="white", linewidth=0.6)
story.picture(figure)

story.figures(
    rmse_painted=scores["districts, painted"]["rmse"],
    rmse_places=scores["places alone"]["rmse"],
    rmse_by_area=scores["traffic, by area"]["rmse"],
    rmse_by_people=scores["traffic, by people"]["rmse"],
    coverage_by_area=scores["traffic, by area"]["coverage_95"],
    coverage_by_people=scores["traffic, by people"]["coverage_95"],
    cases=cases.mean[0] / 1000,
    cases_truth=true_rate * served / 1000,
)
