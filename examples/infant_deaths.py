"""From deaths counted in the counties of North Carolina to a map of risk, and to later counts."""

import geopandas
import matplotlib.pyplot as plt
import numpy as np
from _telling import Telling
from scipy.stats import poisson

import mrgp
from mrgp.datasets.cases import data_file

story = Telling("infant_deaths", __doc__)

# --8<-- [start:data]
# Sudden infant deaths and births of 100 counties, in two periods of years.
counties = geopandas.read_file(data_file("nc_sids/nc_sids.geojson"))
counties = counties.to_crs("EPSG:32119")  # North Carolina's own, in metres
counties = counties[::2].reset_index(drop=True) if story.quick else counties
flat = counties.geometry.affine_transform([1e-3, 0, 0, 1e-3, 0, 0])  # kilometres
counties = geopandas.GeoDataFrame(counties.drop(columns="geometry"), geometry=flat.to_numpy())
first, later = "1974_78", "1979_84"
for years in (first, later):
    births = counties[f"births_{years}"]
    counties[f"thousands_{years}"] = births / 1000
    counties[f"share_{years}"] = counties[f"nonwhite_births_{years}"] / births


def register(years):
    """Return the deaths of some years: the exposure is births, in thousands."""
    return mrgp.from_frame(
        counties.rename(columns={f"share_{years}": "nonwhite share"}),
        y=f"sids_{years}",
        geometry="geometry",
        crs=False,
        spacing=20.0 if story.quick else 12.0,
        task="deaths",
        name="register",
        likelihood="negative_binomial",
        exposure=f"thousands_{years}",
        units="per 1000 births",
        covariates="nonwhite share",
    )


seen, then = register(first), register(later)
level = seen.y.sum() / seen.exposure.sum()
print(f"{len(seen)} counties, {seen.y.sum():.0f} deaths, none in {np.sum(seen.y == 0)} of them")
print(f"{level:.2f} deaths per 1000 births, {then.y.sum() / then.exposure.sum():.2f} later\n")
# --8<-- [end:data]

# --8<-- [start:fit]
fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), progress=None)
print(fit.summary())
# --8<-- [end:fit]

# --8<-- [start:risk]
# Of every county the rate, and the probability that it is above 3 per 1000.
rate = mrgp.predict(fit, seen.support)
raw, risky = seen.y / seen.exposure, rate.exceedance(3.0)
low, high = rate.interval(0.95)
table = counties[["county", "births_1974_78", "sids_1974_78"]]
table = table.assign(raw=raw, mean=rate.mean, low=low, high=high, above_3=risky)
print("\nthe highest raw rates, and what is likely:")
print(table.sort_values("raw", ascending=False).head(6).round(2).to_string(index=False))
print(f"raw rates above 3: {np.sum(raw > 3)}; likely above 3: {np.sum(risky > 0.5)}", end="")
print(f"; nearly surely: {np.sum(risky > 0.95)}")
# --8<-- [end:risk]

# --8<-- [start:pixels]
# A map inside counties: places 6 km apart, each with the share of its county.
west, south, east, north = counties.total_bounds
x, y = np.meshgrid(np.arange(west, east, 6.0), np.arange(south, north, 6.0))
grid = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(x.ravel(), y.ravel()))
places = grid.sjoin(counties).rename(columns={f"share_{first}": "nonwhite share"})
places = places.assign(x=places.geometry.x, y=places.geometry.y)
pixels = mrgp.from_frame(places, ["x", "y"], crs=False, covariates="nonwhite share")
inside = mrgp.predict(fit, pixels)
# --8<-- [end:pixels]


# --8<-- [start:later]
def regression(steps=30):
    """Return the rates of a Poisson regression on the share, by Newton's method."""
    x = np.column_stack([np.ones(len(seen)), counties[f"share_{first}"]])
    beta = np.array([np.log(level), 0.0])
    for _ in range(steps):
        mean = seen.exposure * np.exp(x @ beta)
        beta += np.linalg.solve(x.T @ (mean[:, None] * x), x.T @ (seen.y - mean))
    return np.exp(beta[0] + beta[1] * counties[f"share_{later}"])


def scored(rates):
    """Return log score, CRPS and coverage of Poisson counts of some rates."""
    mean = np.asarray(rates * then.exposure)[:, None]
    steps = poisson.cdf(np.arange(300), mean) - (np.arange(300) >= then.y[:, None])
    low, high = poisson.ppf([[0.025], [0.975]], mean.T)
    with np.errstate(divide="ignore"):
        nlpd = -np.mean(poisson.logpmf(then.y, mean[:, 0]))
    return nlpd, np.mean(np.sum(steps**2, 1)), np.mean((low <= then.y) & (then.y <= high))


new = mrgp.predict(fit, then.support, source="register", noise=True, exposure=then.exposure)
found = mrgp.evaluate(new, then.y)
rows = {"raw rates": scored(raw), "Poisson regression": scored(regression())}
rows["field"] = found["nlpd"], found["crps"], found["coverage_95"]
print(f"\n{'counts of 1979-84':20}{'nlpd':>7}{'crps':>7}{'coverage_95':>13}")
for name, (nlpd, crps, coverage) in rows.items():
    print(f"{name:20}{nlpd:7.2f}{crps:7.2f}{coverage:13.2f}")
# --8<-- [end:later]

figure, axes = plt.subplots(2, 2, figsize=(9.0, 4.3), layout="constrained")
span = {"vmin": 0.0, "vmax": 5.0, "legend": True, "legend_kwds": {"label": "per 1000 births"}}
shades = {"vmin": 0.0, "vmax": 1.0, "legend": True, "cmap": "cividis"}
counties.plot(raw, ax=axes[0, 0], **span)
counties.plot(rate.mean, ax=axes[0, 1], **span)
places.plot(inside.mean, ax=axes[1, 0], markersize=2, marker="s", **span)
counties.plot(risky, ax=axes[1, 1], legend_kwds={"label": "probability"}, **shades)
titles = ("Raw rates", "Rates of counties", "Rates of places", "P(rate of a county > 3)")
for panel, title in zip(axes.flat, titles, strict=True):
    panel.set(title=title, xlabel="km", ylabel="km")
story.picture(figure)

story.figures(
    nlpd_field=rows["field"][0],
    nlpd_regression=rows["Poisson regression"][0],
    crps_field=rows["field"][1],
    crps_regression=rows["Poisson regression"][1],
    crps_raw=rows["raw rates"][1],
    coverage_field=rows["field"][2],
    coverage_raw=rows["raw rates"][2],
)
