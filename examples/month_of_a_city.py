"""Follow a city for a month: sensors by the hour, cells of a coarse model, exactly along time."""

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _telling import Telling

import mrgp
from mrgp.plotting import plot_map
from mrgp.selection import best_rule

story = Telling("month_of_a_city", __doc__)

# --8<-- [start:truth]
# A city of 20 by 20 km: 40 sites, and pixels of 1 km away from roads. The last day is yet to come.
rng = np.random.default_rng(7)
n, days = (15, 4) if story.quick else (40, 30)
t, now = np.arange(24.0 * (days + 1)), 24 * days
axis = np.arange(20) + 0.5
grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
places = np.concatenate([rng.uniform(1.0, 19.0, (n, 2)), grid])


def wander(memory, columns):
    """Return series of unit variance that forget within so many hours."""
    found, keep = rng.standard_normal((len(t), columns)), np.exp(-1 / memory)
    for k in range(1, len(t)):
        found[k] = keep * found[k - 1] + np.sqrt(1 - keep**2) * found[k]
    return found


rush = sum(np.exp(-(((t % 24) - peak) ** 2) / 8) for peak in (8, 18))[:, None]
still = np.exp(0.35 * wander(36.0, 1))  # in still air, what is emitted stays
town = 22 * np.exp(-((places - 10) ** 2).sum(1) / 60)
apart = np.linalg.norm(places[:, None] - places[None], axis=2)
drift = 2 * wander(8.0, len(places)) @ np.linalg.cholesky(np.exp(-apart / 8)).T
kind = np.where(np.arange(len(places)) % 2 < (np.arange(len(places)) < n), "road", "background")
road = (kind == "road") * 20 * rng.gamma(4.0, 0.25, len(places))  # each road its own
truth = 14 + drift + still * ((0.6 + 0.4 * rush) * town + (0.3 + 0.7 * rush) * road)
# --8<-- [end:truth]

# --8<-- [start:data]
seen = truth + rng.normal(0, 1.5, truth.shape)
seen[rng.uniform(size=seen.shape) < 0.05] = np.nan
inputs = ["east", "north", "time"]


def table(which, times):
    """Return rows of places at times, hour by hour, with what sites report."""
    rows, columns = np.repeat(times.astype(int), len(which)), np.tile(which, len(times))
    east, north = places[columns].T
    about = {"east": east, "north": north, "time": t[rows], "kind": kind[columns]}
    return pd.DataFrame(about | {"no2": seen[rows, columns], "truth": truth[rows, columns]})


def sensors(frame):
    return mrgp.from_frame(frame, inputs, "no2", name="sites", units="ug/m3", covariates="kind")


held, kept = np.arange(n)[2::5], np.setdiff1d(np.arange(n), np.arange(n)[2::5])

# A model has cells of 5 km and means of three hours, knows of no road, and is biased.
corner = np.arange(0.0, 20.0, 5.0)
lower = np.array([(a, b, hour) for hour in t[:now:3] for a in corner for b in corner])
inside = (np.floor(grid / 5) @ [4, 1]).astype(int)
means = np.stack([truth[:now, n:][:, inside == c].mean(1) for c in range(16)], 1)
output = 0.7 * means.reshape(-1, 3, 16).mean(1) + 5 + rng.normal(0, 0.8, (now // 3, 16))
low, high = ([f"{name}_{side}" for name in inputs] for side in ("start", "end"))
cells = pd.DataFrame(np.hstack([lower, lower + [5.0, 5.0, 3.0]]), columns=[*low, *high])
cells = cells.assign(no2=output.ravel(), kind="background")
about = {"name": "model", "units": "ug/m3", "covariates": "kind"}
model = mrgp.from_frame(cells, y="no2", start=low, end=high, **about)
data = mrgp.Dataset([sensors(table(kept, t[:now])), model])
print(data)
# --8<-- [end:data]

# --8<-- [start:fit]
begun = time.process_time()
recipe = mrgp.MRGP(method="markov", bias="affine", target="sites")
fit = mrgp.fit(recipe, data, progress=None)
cost = time.process_time() - begun
print(fit.summary())
print(fit.effects().round(1))
# --8<-- [end:fit]

# --8<-- [start:unseen]
# Sites that no model saw, hour by hour and by means of days. Beside it, the best of simple rules.
simple = best_rule(data, target="sites").rule.fit(data, target="sites")
hours = table(held, t[:now])
whole = hours.assign(start=hours["time"] // 24 * 24).groupby(["start", "east", "north", "kind"])
whole = whole["truth"].mean().reset_index().assign(end=lambda frame: frame["start"] + 24)
about = {"start": "start", "end": "end", "inputs": {"start": "time"}, "covariates": "kind"}
day = mrgp.predict(fit, mrgp.from_frame(whole, ["east", "north"], **about))
hour = mrgp.predict(fit, sensors(hours).support, source="sites", noise=True)

print(f"\nunseen sites{'rmse':>8}{'by ' + simple.rule.name:>16}{'coverage_95':>14}")
scores = {}
for name, pred, y in (("hours", hour, hours["no2"]), ("days", day, whole["truth"])):
    found, beside = mrgp.evaluate(pred, y), simple.predict(pred.support)[0]
    scores[name] = found["rmse"], np.sqrt(np.nanmean((beside - y) ** 2)), found["coverage_95"]
    print(f"{name:12}{scores[name][0]:8.2f}{scores[name][1]:16.2f}{scores[name][2]:14.2f}")
risk, above = day.exceedance(30.0), whole["truth"] > 30
print(f"a day at an unseen site: {day.mean[-1]:.1f}, sd {day.std[-1]:.1f}, ", end="")
print(f"above 30 with {risk[-1]:.2f}; it was {whole['truth'].iloc[-1]:.1f}")
print(f"days above 30: {above.sum()} of {len(above)}, expected {risk.sum():.1f}")
print(f"where that was likely: {np.sum(above & (risk > 0.5))} of {np.sum(risk > 0.5)}")
# --8<-- [end:unseen]

# --8<-- [start:ahead]
# The next day, at the sites that were fitted; and what one more hour of reports costs.
later = table(kept, t[now:])
forecast = mrgp.predict(fit, sensors(later).support, source="sites", noise=True)
error = forecast.mean - later["no2"], seen[now - 24 : now, kept].ravel() - later["no2"]
print(f"\nhours ahead{'rmse':>9}{'as yesterday':>16}")
ahead = {}
for first, last in ((0, 3), (3, 12), (12, 24)):
    rows = (later["time"] >= now + first) & (later["time"] < now + last)
    ahead[last] = [np.sqrt(np.nanmean(e[rows] ** 2)) for e in error]
    print(f"{f'{first + 1} to {last}':12}{ahead[last][0]:8.2f}{ahead[last][1]:16.2f}")
begun = time.process_time()
longer = fit.extend(mrgp.Dataset([sensors(table(kept, t[now : now + 1]))]))
print(f"an hour more: {(time.process_time() - begun) / cost:.1%} of the time of the fit")
# --8<-- [end:ahead]

# --8<-- [start:map]
# Eight in the morning of the last day, away from roads, beside the model's cells as they are.
then = now - 16
pixels = table(np.arange(n, len(places)), t[[then]])
view = mrgp.predict(fit, mrgp.from_frame(pixels, inputs, covariates="kind"))
painted, known = output[then // 3][inside], pixels["truth"].to_numpy()
rmse_map, rmse_painted = (np.sqrt(np.mean((m - known) ** 2)) for m in (view.mean, painted))
print(f"\nthe map: rmse {rmse_map:.2f}, the model's cells {rmse_painted:.2f}")
# --8<-- [end:map]

figure, axes = plt.subplots(2, 3, figsize=(12, 6.5), layout="constrained")
flat, no2 = mrgp.points(grid, inputs=inputs[:2]), {"label": "no2 (ug/m3)", "limits": (12.0, 38.0)}
for panel, values, title in zip(
    axes[0],
    (painted, known, view.mean),
    ("The model's cells", "Truth away from roads", "Estimate"),
    strict=True,
):
    plot_map(panel, flat, values, title=title, **no2)


def band(panel, times, pred, site, since, title):
    """Draw a prediction at a site, and the truth."""
    panel.fill_between(times, *pred.interval(0.95), alpha=0.3)
    panel.plot(times, pred.mean)
    panel.plot(t[since : int(times[-1]) + 1], truth[since : int(times[-1]) + 1, site], "k", lw=0.8)
    panel.set(title=title, xlabel="hour", ylabel="no2 (ug/m3)")


last = np.arange(max(0, now - 96), now)
band(axes[1, 0], t[last], hour[last * len(held)], held[0], last[0], "An unseen site by a road")
axes[1, 1].errorbar(whole["truth"], day.mean, 1.96 * day.std, fmt=".", alpha=0.4)
axes[1, 1].axline((30, 30), slope=1, color="k", lw=0.8)
axes[1, 1].set(title="Means of days at unseen sites", xlabel="truth", ylabel="estimate")
soon = forecast[np.arange(24) * len(kept)]
band(axes[1, 2], t[now:], soon, kept[0], now - 24, "A forecast, and what came")
story.picture(figure)

story.figures(
    rmse_hours=scores["hours"][0],
    rmse_days=scores["days"][0],
    rule_hours=scores["hours"][1],
    rule_days=scores["days"][1],
    coverage_hours=scores["hours"][2],
    coverage_days=scores["days"][2],
    rmse_soon=ahead[3][0],
    yesterday_soon=ahead[3][1],
    rmse_map=rmse_map,
    rmse_painted=rmse_painted,
    ratio=fit.parameters()["ratio[model]"],
)
