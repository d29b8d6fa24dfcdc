"""The demonstration: a simulated city, fused and scored."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import mrgp
from mrgp.cli.app import app, progress
from mrgp.datasets import Simulation, city
from mrgp.evaluation import BRIEF, SCORES


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("mrgp-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated city.")] = 0,
) -> None:
    """Simulate a city seen by sensors and a satellite, fuse both, and compare with baselines."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; give a folder.")
    console = Console()
    simulation = city(seed)
    console.print("A simulated city of 20 x 20 km, NO2 in ug/m3; its truth is known.")
    console.print(f"{simulation.data}\n", highlight=False, soft_wrap=True)
    names = ("mr-gp", "center-point", "single-gp")
    predictions = {name: _predict(name, simulation) for name in names}
    scores = {name: mrgp.evaluate(p, simulation.truth) for name, p in predictions.items()}
    table = Table("model", *(SCORES[name].heading for name in BRIEF))
    for model, found in scores.items():
        table.add_row(model, *(f"{found[name]:.3g}" for name in BRIEF))
    console.print(table)
    console.print(
        "mr-gp averages the field over each cell, center-point takes a cell for its\n"
        "centre, single-gp sees the sensors alone. Scored against the truth on a grid\n"
        "of 60 x 60 points: lower rmse, mae, crps and nlpd are better, and 0.95 in 95 %.",
        highlight=False,
    )
    out.mkdir(parents=True, exist_ok=True)
    for file in _demo_pictures(simulation, predictions, scores, out):
        typer.echo(f"wrote {file}")


def _predict(name: str, simulation: Simulation) -> mrgp.Prediction:
    model: Any = mrgp.CenterPoint(mrgp.MRGP()) if name == "center-point" else mrgp.MRGP()
    data = simulation.data
    if name == "single-gp":
        data = data.select(source=simulation.target)
    fitted = mrgp.fit(model, data, progress=progress(f"fit {name}"))
    return mrgp.predict(fitted, simulation.support)


def _demo_pictures(
    simulation: Simulation,
    predictions: dict[str, mrgp.Prediction],
    scores: dict[str, dict[str, float]],
    out: Path,
) -> list[Path]:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from mrgp.plotting import SPREAD_COLOURS, plot_calibration, plot_data, plot_map

    label = "NO2 (ug/m3)"
    limits = (float(simulation.truth.min()), float(simulation.truth.max()))
    figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    support = simulation.support
    plot_map(axes[0, 0], support, simulation.truth, label=label, limits=limits, title="Truth")
    title = "Data: satellite cells and sensors"
    plot_data(axes[0, 1], simulation.data, label=label, limits=limits, title=title)
    for place, name in zip((axes[0, 2], axes[1, 0], axes[1, 1]), predictions, strict=True):
        title = f"{name}: mean (rmse {scores[name]['rmse']:.2f})"
        plot_map(place, support, predictions[name].mean, label=label, limits=limits, title=title)
    spread = predictions["mr-gp"].std
    title = "mr-gp: standard deviation"
    of_label = f"sd of {label}"
    plot_map(axes[1, 2], support, spread, label=of_label, title=title, colours=SPREAD_COLOURS)
    for place in axes.flat:
        place.set(xlabel="east (km)", ylabel="north (km)")
    maps = out / "maps.png"
    figure.savefig(maps, dpi=120)
    plt.close(figure)
    figure, place = plt.subplots(figsize=(5, 5), layout="constrained")
    plot_calibration(place, predictions, simulation.truth)
    calibration = out / "calibration.png"
    figure.savefig(calibration, dpi=120)
    plt.close(figure)
    return [maps, calibration]
