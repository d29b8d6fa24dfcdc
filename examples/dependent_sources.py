"""Find that one source was made from another, and keep it from counting twice."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from _telling import Telling

import mrgp
from mrgp.plotting import plot_dependence

story = Telling("dependent_sources", __doc__)

# --8<-- [start:world]
# Four days of a lake's surface temperature. The buoy reports every hour, with noise. The bulletin
# has means of three of the buoy's reports: it repeats their errors and adds nothing. A ferry
# carries a thermometer with errors of its own.
HOURS = 96


def truth(hour):
    return 14 + 1.5 * np.sin(2 * np.pi * hour / 24) + np.sin(2 * np.pi * hour / 41 + 1)


def world(seed):
    rng = np.random.default_rng(seed)
    hour = np.arange(0.0, HOURS)
    buoy = truth(hour) + rng.normal(0, 0.5, HOURS)
    start = np.arange(0.0, HOURS, 3)
    bulletin = buoy.reshape(-1, 3).mean(1)
    crossings = np.sort(rng.uniform(0, HOURS, HOURS))
    ferry = truth(crossings) + rng.normal(0, 0.5, HOURS)
    about = {"task": "temperature", "units": "degC"}
    return mrgp.Dataset(
        [
            mrgp.Observations(
                mrgp.points(hour[:, None], inputs="hour"), buoy, name="buoy", **about
            ),
            mrgp.Observations(
                mrgp.intervals(start - 0.5, start + 2.5, inputs="hour"),
                bulletin,
                name="bulletin",
                **about,
            ),
            mrgp.Observations(
                mrgp.points(crossings[:, None], inputs="hour"), ferry, name="ferry", **about
            ),
        ]
    )


# --8<-- [end:world]

# --8<-- [start:look]
model = mrgp.MRGP(mrgp.RBF())
data = world(1)
print(data)
found = mrgp.dependence(model, data)
print(found.summary())
# --8<-- [end:look]

# --8<-- [start:weights]
# Cautions about weights come as warnings, too; here the summary prints them.
warnings.filterwarnings("ignore", message="composite_weights:")
weights = mrgp.composite_weights(model, data, per_source=True)
print(weights.summary())
# --8<-- [end:weights]


# --8<-- [start:ways]
def ways(data):
    """Fit one world in four ways."""
    return {
        "all count fully": mrgp.fit(model, data),
        "one weight": mrgp.fit(model, data, weights="auto"),
        "a weight each": mrgp.fit(
            model, data, weights=mrgp.composite_weights(model, data, per_source=True)
        ),
        "no bulletin": mrgp.fit(model, data.select(source=["buoy", "ferry"])),
    }


# --8<-- [end:ways]

# --8<-- [start:repeat]
# One world says little about coverage: take several, and count.
worlds = range(2 if story.quick else 15)
at = mrgp.points(np.linspace(0, HOURS - 1, 191)[:, None], inputs="hour")
known = truth(at.x[:, 0])
scores = {}
for seed in worlds:
    fitted = ways(world(seed))
    for name, fit in fitted.items():
        scores.setdefault(name, []).append(mrgp.evaluate(mrgp.predict(fit, at), known))

print(f"\n{len(worlds)} worlds{'':9}{'coverage_95':>12}{'width_95':>10}{'rmse':>7}")
table = {}
for name, each in scores.items():
    kinds = ("coverage_95", "width_95", "rmse")
    table[name], width, rmse = (np.mean([s[kind] for s in each]) for kind in kinds)
    print(f"{name:18}{table[name]:10.2f}{width:10.2f}{rmse:7.3f}")
# --8<-- [end:repeat]

story.picture(plot_dependence(found), "residuals")
figure, axes = plt.subplots(2, 1, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
hour = at.x[:, 0]
for panel, name in zip(axes, ("all count fully", "a weight each"), strict=True):
    pred = mrgp.predict(fitted[name], at)
    low, high = pred.interval(0.95)
    panel.fill_between(hour, low - known, high - known, alpha=0.25, label="95 % interval")
    panel.plot(hour, pred.mean - known, label="mean less truth")
    missed = np.where((low > known) | (high < known), 0.0, np.nan)
    panel.plot(hour, missed, color="#D55E00", linewidth=4, label="truth outside")
    panel.axhline(0, color="0.4", linewidth=0.8, linestyle="--")
    panel.set(title=f"{name}, the last of the worlds", ylabel="degC", xlim=(0, HOURS))
axes[0].legend(frameon=False, ncols=3, fontsize=8)
axes[1].set(xlabel="hour")
story.picture(figure)

story.figures(
    coverage_full=table["all count fully"],
    coverage_one=table["one weight"],
    coverage_each=table["a weight each"],
    coverage_without=table["no bulletin"],
    weight_buoy=weights["buoy"],
    weight_bulletin=weights["bulletin"],
    weight_ferry=weights["ferry"],
)
