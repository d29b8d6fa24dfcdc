"""Fill an outage of one pollutant's monitor with the help of another pollutant and of filters."""

import matplotlib.pyplot as plt
import numpy as np
from _telling import Telling

import mrgp
from mrgp.plotting import plot_function

story = Telling("two_pollutants", __doc__)

# --8<-- [start:truth]
# Weather drives both pollutants. What PM10 makes of it doubles while the wind turns, day by day.
days = 8 if story.quick else 12
rng = np.random.default_rng(3)
phase = rng.uniform(0, 2 * np.pi, 4)


def weather(day):
    speeds, sizes = (1.1, 2.3, 4.1, 6.3), (1.0, 0.8, 0.6, 0.5)
    return sum(a * np.sin(w * day + p) for a, w, p in zip(sizes, speeds, phase, strict=True))


def no2(day):
    return 40 + 8 * weather(day)


def pm10(day):
    return 26 + (3 + 4 * day / days) * weather(day)


# --8<-- [end:truth]

# --8<-- [start:data]
# Both monitors report every three hours. That of PM10 is down for three days near the end.
day = np.arange(0.0, days, 1 / 8) + 1 / 16
out_from, out_until = days - 4.0, days - 1.0
down = (day > out_from) & (day < out_until)
pm10_reports = np.where(down, np.nan, pm10(day) + rng.normal(0, 1.0, len(day)))
no2_reports = no2(day) + rng.normal(0, 1.5, len(day))

# Filters, weighed once a day, know the daily mean of PM10 throughout.
start = np.arange(0.0, days)
minutes = start[:, None] + (np.arange(96) + 0.5) / 96
filter_means = pm10(minutes).mean(1) + rng.normal(0, 0.5, days)

at = mrgp.points(day[:, None], inputs="day")
data = mrgp.Dataset(
    [
        mrgp.Observations(at, pm10_reports, task="pm10", name="monitor", units="ug/m3"),
        mrgp.Observations(at, no2_reports, task="no2", name="monitor", units="ug/m3"),
        mrgp.Observations(
            mrgp.intervals(start, start + 1, inputs="day"),
            filter_means,
            task="pm10",
            name="filters",
            units="ug/m3",
        ),
    ]
)
print(data)
# --8<-- [end:data]

# --8<-- [start:fit]
inducing = 40 if story.quick else 60
models = {
    "pm10 alone": (mrgp.MRGP(), data.select(task="pm10")),
    "constant weights": (mrgp.MRGPRN(latents=1, kernel_w="constant"), data),
    "varying weights": (mrgp.MRGPRN(latents=1, inducing_f=inducing, inducing_w=10), data),
}
fits = {name: mrgp.fit(model, seen) for name, (model, seen) in models.items()}
print(fits["varying weights"].summary())
# --8<-- [end:fit]

# --8<-- [start:score]
# Scored inside the outage, where nobody saw PM10 but the filters.
gap = mrgp.points(np.linspace(out_from, out_until, 73)[:, None], inputs="day")
known = pm10(gap.x[:, 0])
predictions = {name: mrgp.predict(fit, gap, task="pm10") for name, fit in fits.items()}
scores = {name: mrgp.evaluate(pred, known) for name, pred in predictions.items()}

there = ~np.isnan(pm10_reports)
line = np.interp(gap.x[:, 0], day[there], pm10_reports[there])
scores["a line across"] = {"rmse": np.sqrt(np.mean((line - known) ** 2))}

print(f"\n{'in the outage':18}{'rmse':>7}{'coverage_95':>13}{'width_95':>10}")
for name, s in scores.items():
    more = f"{s['coverage_95']:13.2f}{s['width_95']:10.1f}" if "width_95" in s else ""
    print(f"{name:18}{s['rmse']:7.2f}{more}")
# --8<-- [end:score]

# --8<-- [start:exceed]
# What the authority asks for: how long was PM10 above 25 ug/m3 while the monitor was down?
hours = 24 * (out_until - out_from)
truly = hours * np.mean(known > 25)
print(f"\nhours above 25 ug/m3 in the outage: truth {truly:.0f}")
for name, pred in predictions.items():
    print(f"  {name:18}{hours * np.mean(pred.exceedance(25.0)):5.0f}")
# --8<-- [end:exceed]

figure, axes = plt.subplots(3, 1, figsize=(9, 8), sharex=True, layout="constrained")
whole = mrgp.points(np.linspace(0, days, 400)[:, None], inputs="day")
for panel, (name, fit) in zip(axes, fits.items(), strict=True):
    pred = mrgp.predict(fit, whole, task="pm10")
    plot_function(pred, panel, data=data, truth=pm10(whole.x[:, 0]))
    panel.axvspan(out_from, out_until, color="0.93", zorder=-1)
    panel.set(title=name, ylim=(0, 52), xlim=(0, days))
axes[0].legend(frameon=False, ncols=5, loc="upper left", fontsize=8)
story.picture(figure)

story.figures(
    rmse_line=scores["a line across"]["rmse"],
    rmse_alone=scores["pm10 alone"]["rmse"],
    rmse_constant=scores["constant weights"]["rmse"],
    rmse_varying=scores["varying weights"]["rmse"],
    coverage_alone=scores["pm10 alone"]["coverage_95"],
    coverage_constant=scores["constant weights"]["coverage_95"],
    coverage_varying=scores["varying weights"]["coverage_95"],
)
