"""The demonstration: a simulated city, fused and scored."""

from pathlib import Path
from typing import Annotated, Any

import typer

import mrgp
from mrgp._drafts import draft
from mrgp.cli.app import app, progress, say, show
from mrgp.datasets import Simulation, city
from mrgp.evaluation import BRIEF, SCORES

LABEL = "NO2 (ug/m3)"


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("mrgp-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated city.")] = 0,
) -> None:
    """Simulate a city seen by sensors and a satellite, fuse both, and compare with baselines."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; give a folder.")
    simulation = city(seed)
    say("A simulated city of 20 x 20 km, NO2 in ug/m3; its truth is known.")
    say(f"{simulation.data}\n")
    models = {
        "mr-gp": (mrgp.MRGP(), simulation.data),
        "center-point": (mrgp.CenterPoint(mrgp.MRGP()), simulation.data),
        "single-gp": (mrgp.MRGP(), simulation.data.select(source=simulation.target)),
    }
    predictions = {}
    for name, (model, data) in models.items():
        fitted = mrgp.fit(model, data, progress=progress(f"fit {name}"))
        predictions[name] = mrgp.predict(fitted, simulation.support)
    scores = {name: mrgp.evaluate(p, simulation.truth) for name, p in predictions.items()}
    rows = [[model, *(f"{found[name]:.3g}" for name in BRIEF)] for model, found in scores.items()]
    show(["model", *(SCORES[name].heading for name in BRIEF)], rows)
    say(
        "mr-gp averages the field over each cell, center-point takes a cell for its\n"
        "centre, single-gp sees the sensors alone. Scored against the truth on a grid\n"
        "of 60 x 60 points: lower rmse, mae, crps and nlpd are better, and 0.95 in 95 %."
    )
    out.mkdir(parents=True, exist_ok=True)
    _draw(simulation, predictions, {name: found["rmse"] for name, found in scores.items()}, out)


def _draw(
    simulation: Simulation,
    predictions: dict[str, mrgp.Prediction],
    rmse: dict[str, float],
    out: Path,
) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from mrgp.plotting import SPREAD_COLOURS, plot_calibration, plot_data, plot_map

    support, truth = simulation.support, simulation.truth
    field: dict[str, Any] = {"label": LABEL, "limits": (float(truth.min()), float(truth.max()))}
    maps, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    first, second, *others, last = axes.flat
    plot_map(first, support, truth, title="Truth", **field)
    plot_data(second, simulation.data, title="Data: satellite cells and sensors", **field)
    for place, (name, found) in zip(others, predictions.items(), strict=True):
        plot_map(place, support, found.mean, title=f"{name}: mean (rmse {rmse[name]:.2f})", **field)
    spread: dict[str, Any] = {"label": f"sd of {LABEL}", "title": "mr-gp: standard deviation"}
    plot_map(last, support, predictions["mr-gp"].std, colours=SPREAD_COLOURS, **spread)
    for place in axes.flat:
        place.set(xlabel="east (km)", ylabel="north (km)")
    calibration, place = plt.subplots(figsize=(5, 5), layout="constrained")
    plot_calibration(place, predictions, truth)
    for file, figure in {"maps.png": maps, "calibration.png": calibration}.items():
        with draft(out / file) as named:
            figure.savefig(named, dpi=120)
        plt.close(figure)
        say(f"wrote {out / file}")
