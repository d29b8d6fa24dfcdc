"""From counts of cases in districts to a map of risk, and to the counts of the next years."""

import matplotlib.pyplot as plt
import numpy as np
from _telling import Telling

import mrgp
from mrgp.plotting import plot_map

story = Telling("district_counts", __doc__)

# --8<-- [start:truth]
# A risk that varies over 10 by 10 districts, with a smooth part and a known one, poverty.
rng = np.random.default_rng(3)
districts, inside = (7 if story.quick else 10), 3
axis = (np.arange(districts * inside) + 0.5) / inside
places = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


def poverty_at(x):
    """Return poverty, known everywhere, in units of its standard deviation."""
    return np.sin(1.9 * x[:, 0] + 0.5) + np.cos(1.3 * x[:, 1] - 0.8 * x[:, 0])


smooth = 0.6 * np.sin(0.7 * places[:, 0]) * np.cos(0.5 * places[:, 1])
risk = 2.0 * np.exp(smooth + 0.3 * poverty_at(places))  # cases per 1000 births
# --8<-- [end:truth]

# --8<-- [start:data]
# Each district reports how many cases its births had. Many are small, and report none.
cell = (places.astype(int) @ [districts, 1]).argsort(kind="stable").reshape(-1, inside**2)
births = 3000 * rng.gamma(0.7, 1.0, len(cell)) + 100
cases = rng.poisson(births / 1000 * risk[cell].mean(1))
print(f"{len(cases)} districts, {cases.sum()} cases, none in {np.sum(cases == 0)} of them\n")

regions = mrgp.nodes(places[cell], inputs=("east", "north"))
counts = mrgp.Observations(
    regions,
    cases,
    task="risk",
    name="register",
    likelihood=mrgp.Poisson(),
    exposure=births / 1000,
    units="per 1000",
)
data = mrgp.Dataset([counts]).with_covariates(poverty_at, "poverty")
# --8<-- [end:data]

# --8<-- [start:fit]
space = mrgp.Matern32(lengthscale=3.0, dims=("east", "north"))
slope = mrgp.Linear(variance=mrgp.positive(0.1, mrgp.LogNormal(0.1, 1.0)), dims="poverty")
fit = mrgp.fit(mrgp.MRGP(space + slope), data, progress=None)
print(fit.summary())
# --8<-- [end:fit]

# --8<-- [start:score]
# Beside it: rates as if they were Gaussian, with the noise that counting has, and painted.
rates = cases / (births / 1000)
level = cases.sum() / (births.sum() / 1000)
plain = mrgp.Observations(
    regions, rates, task="risk", name="register", noise_variance=level / (births / 1000)
)
gaussian = mrgp.fit(
    mrgp.MRGP(space + mrgp.Linear(dims="poverty")),
    mrgp.Dataset([plain]).with_covariates(poverty_at, "poverty"),
    progress=None,
)
pixels = mrgp.points(places, inputs=("east", "north"))
maps = {"counts": mrgp.predict(fit, pixels), "Gaussian rates": mrgp.predict(gaussian, pixels)}
scores = {name: mrgp.evaluate(found, risk) for name, found in maps.items()}
painted = np.empty(len(places))
painted[cell] = rates[:, None]

print(f"\n{'risk at pixels':16}{'rmse':>7}{'crps':>7}{'coverage_95':>13}{'least lower end':>17}")
for name, s in scores.items():
    least = maps[name].interval(0.95)[0].min()
    print(f"{name:16}{s['rmse']:7.2f}{s['crps']:7.2f}{s['coverage_95']:13.2f}{least:17.2f}")
rmse_painted = np.sqrt(np.mean((painted - risk) ** 2))
print(f"{'painted':16}{rmse_painted:7.2f}")
# --8<-- [end:score]

# --8<-- [start:next]
# What will the next years count? New counts of the source, given their births.
later = rng.poisson(births / 1000 * risk[cell].mean(1))
new = mrgp.predict(fit, regions, source="register", noise=True, exposure=births / 1000)
found = mrgp.evaluate(new, later + 0.0)
low, high = new.interval(0.95)
print(f"\nnew counts: log score {found['nlpd']:.2f}, crps {found['crps']:.2f}", end="")
print(f", in 95 % intervals {found['coverage_95']:.2f}")
print(f"the first district: {low[0]:.0f} to {high[0]:.0f} cases, and it had {later[0]}")
# --8<-- [end:next]

figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
span = {"label": "cases per 1000 births", "limits": (0.0, 6.0)}
plot_map(axes[0], pixels, painted, title="Rates of districts, painted", **span)
plot_map(axes[1], pixels, risk, title="Truth", **span)
plot_map(axes[2], pixels, maps["counts"].mean, title="From counts", **span)
above = maps["counts"].exceedance(3.0)
plot_map(axes[3], pixels, above, title="P(risk > 3)", colours="cividis", limits=(0.0, 1.0))
story.picture(figure)

story.figures(
    rmse_painted=rmse_painted,
    rmse_counts=scores["counts"]["rmse"],
    rmse_gaussian=scores["Gaussian rates"]["rmse"],
    coverage_counts=scores["counts"]["coverage_95"],
    coverage_new=found["coverage_95"],
)
