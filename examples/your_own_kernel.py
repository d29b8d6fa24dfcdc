"""Write a kernel for a lake that sloshes, test it over windows, fit with it, save and load it."""

import dataclasses

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from _telling import Telling

import mrgp
from mrgp.kernels import LeafKernel
from mrgp.parameters import Parameter
from mrgp.plotting import plot_function

story = Telling("your_own_kernel", __doc__)


# --8<-- [start:kernel]
class Seiche(LeafKernel):
    """A pendulum that is damped, and pushed at random, along one input.

    `period` is that of the swing, `memory` the time after which damping leaves a third of it.
    """

    period: object = 1.0
    memory: object = 1.0

    def pair(self, x, z):
        # After binding and unwrapping every number is an array, and `columns` has the input.
        lag = jnp.abs(x[..., self.columns[0]] - z[..., self.columns[0]])
        pace = 2 * np.pi / self.period
        swing = jnp.cos(pace * lag) + jnp.sin(pace * lag) / (pace * self.memory)
        return self.variance * jnp.exp(-lag / self.memory) * swing

    def bind(self, binding):
        dims = self.bound_dims(binding.geometry)
        if len(dims) != 1:
            raise ValueError(f'Seiche sees one input; choose it, as Seiche(dims="{dims[0]}").')
        numbers = (self.period, 0.1), (self.memory, 1.0), (self.variance or binding.variance, 1.5)
        period, memory, variance = (as_parameter(value, log_sd) for value, log_sd in numbers)
        return dataclasses.replace(self, dims=dims, period=period, memory=memory, variance=variance)


def as_parameter(value, log_sd):
    """Let a number be where the fit starts, with a prior around it; keep a Parameter."""
    is_given = isinstance(value, Parameter)
    return value if is_given else mrgp.positive(value, mrgp.LogNormal(value, log_sd))


# --8<-- [end:kernel]

# --8<-- [start:test]
# Test one: a covariance has no negative eigenvalues, beyond rounding.
kernel = Seiche(period=2.0, memory=6.0, variance=4.0)
smallest, largest = np.linalg.eigvalsh(kernel(np.linspace(0, 20, 200)[:, None]))[[0, -1]]
print(f"eigenvalues from {smallest / largest:.0e} to 1 of the largest")

# Test two: means over windows, as the library takes them, against sums over 400 places in each.
windows = mrgp.intervals([0.0, 0.5, 3.0, 7.0], [1.0, 2.5, 3.0, 10.0], inputs="hour")
error = mrgp.quadrature_error(windows, mrgp.Midpoint(400), kernel)
print(error)
# --8<-- [end:test]

# --8<-- [start:data]
# A lake about a level of 400 cm: a pendulum of period 2.2 h, damped, and pushed by gusts.
rng = np.random.default_rng(2)
hours, step = 36.0 if story.quick else 48.0, 0.01
time = np.arange(0, hours, step)
level, speed, path = 0.0, 0.0, np.empty(len(time))
for i in range(len(time)):
    push = rng.normal(0, 12.0) / np.sqrt(step)
    speed += step * (push - 2 * 0.08 * speed - (2 * np.pi / 2.2) ** 2 * level)
    level += step * speed
    path[i] = 400 + level


def truth(at):
    return np.interp(at, time, path)


# A logger reads the level every 20 minutes, but is out for six hours. A gauge has hourly means.
at = np.arange(0.1, hours, 1 / 3)
out_from, out_until = hours - 10.0, hours - 4.0
at = at[(at < out_from) | (at > out_until)]
readings = truth(at) + rng.normal(0, 0.5, len(at))
start = np.arange(hours)
means = path.reshape(len(start), -1).mean(1) + rng.normal(0, 0.2, len(start))
about = {"task": "level", "units": "cm"}
points = mrgp.points(at[:, None], inputs="hour")
windows = mrgp.intervals(start, start + 1, inputs="hour")
logger = mrgp.Observations(points, readings, name="logger", **about)
gauge = mrgp.Observations(windows, means, name="gauge", **about)
data = mrgp.Dataset([logger, gauge])
print(data)
# --8<-- [end:data]

# --8<-- [start:fit]
# The length and the depth of the basin put the period near 2.3 hours.
fits = {
    "Seiche": mrgp.fit(mrgp.MRGP(Seiche(period=2.3, memory=6.0)), data),
    "Matern32": mrgp.fit(mrgp.MRGP(), data),
}
print(fits["Seiche"].summary())
# --8<-- [end:fit]

# --8<-- [start:score]
gap = mrgp.points(np.linspace(out_from, out_until, 181)[:, None], inputs="hour")
known = truth(gap.x[:, 0])
scores = {k: mrgp.evaluate(mrgp.predict(fit, gap), known) for k, fit in fits.items()}
inside = np.minimum(gap.x[:, 0].astype(int), len(start) - 1)
scores["hourly means"] = {"rmse": np.sqrt(np.mean((means[inside] - known) ** 2))}
print(f"\n{'in the outage':15}{'rmse':>7}{'coverage_95':>13}{'width_95':>10}")
for name, s in scores.items():
    more = f"{s['coverage_95']:13.2f}{s['width_95']:10.1f}" if "width_95" in s else ""
    print(f"{name:15}{s['rmse']:7.2f}{more}")
# --8<-- [end:score]

# --8<-- [start:save]
# A file holds no code: whoever loads it must have the class, and say so.
path_of_fit = story.out / "lake.fit"
mrgp.save(fits["Seiche"], path_of_fit)
try:
    mrgp.load(path_of_fit)
except ValueError as refusal:
    print(f"\n{refusal}")
again = mrgp.load(path_of_fit, types=[Seiche])
same = np.array_equal(mrgp.predict(again, gap).mean, mrgp.predict(fits["Seiche"], gap).mean)
print(f"the loaded fit predicts the same: {same}")
path_of_fit.unlink()
# --8<-- [end:save]

figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
shown = mrgp.points(np.linspace(out_from - 6, hours, 500)[:, None], inputs="hour")
for panel, (name, fit) in zip(axes, fits.items(), strict=True):
    plot_function(mrgp.predict(fit, shown), panel, data=data, truth=truth(shown.x[:, 0]))
    panel.axvspan(out_from, out_until, color="0.93", zorder=-1)
    panel.set(title=name, xlim=(out_from - 6, hours))
    panel.margins(y=0.2)
axes[0].legend(frameon=False, ncols=5, fontsize=8, loc="upper left")
story.picture(figure)

story.figures(
    quadrature_error=error.largest,
    period=fits["Seiche"].parameters()["kernel.period"],
    rmse_seiche=scores["Seiche"]["rmse"],
    rmse_matern=scores["Matern32"]["rmse"],
    rmse_means=scores["hourly means"]["rmse"],
    coverage_seiche=scores["Seiche"]["coverage_95"],
    coverage_matern=scores["Matern32"]["coverage_95"],
    same=same,
)
