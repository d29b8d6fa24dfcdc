"""Covariates from a file to a prediction, by the command line."""

import numpy as np
import pandas as pd
import pytest

from mrgp.cli import command

CONFIG = """
inputs = ["lon", "lat"]

[sources.sites]
file = "sites.csv"
y = "no2"
x = ["lon", "lat"]
crs = "EPSG:4326"
covariates = ["type", "traffic"]

[model]
recipe = "MRGP"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng, made = np.random.default_rng(0), tmp_path_factory.mktemp("covariates")
    kind = np.array(["park", "road"])[np.arange(24) % 2]
    frame = pd.DataFrame(
        {
            "lon": rng.uniform(-0.2, 0.1, 24),
            "lat": rng.uniform(51.4, 51.6, 24),
            "type": kind,
            "traffic": rng.uniform(0, 5, 24),
        }
    )
    frame["no2"] = 20 + 8 * (kind == "road") + frame["traffic"] + 0.1 * rng.standard_normal(24)
    frame.to_csv(made / "sites.csv", index=False)
    frame.drop(columns="no2")[:4].to_csv(made / "places.csv", index=False)
    frame[["lon", "lat", "traffic"]].to_csv(made / "lacking.csv", index=False)
    (made / "mrgp.toml").write_text(CONFIG)
    assert command(["fit", str(made / "mrgp.toml"), "--out", str(made / "fit.mrgp")]) == 0
    return made


def test_a_table_of_places_brings_its_covariates(folder):
    out = folder / "found.csv"
    places = ["predict", str(folder / "fit.mrgp"), "--at", str(folder / "places.csv")]
    assert command([*places, "--out", str(out)]) == 0
    found, seen = pd.read_csv(out), pd.read_csv(folder / "sites.csv")[:4]
    assert list(found["type"]) == list(seen["type"])
    np.testing.assert_allclose(found["mean"], seen["no2"], atol=0.6)


def test_a_grid_has_one_value_of_each(folder, capsys):
    grid = "lon=-0.1:0.0:0.05,lat=51.5,type=road,traffic=2"
    asked = ["predict", str(folder / "fit.mrgp"), "--out", str(folder / "grid.csv"), "--grid"]
    assert command([*asked, grid]) == 0
    np.testing.assert_allclose(pd.read_csv(folder / "grid.csv")["mean"], 30.0, atol=1.5)
    assert command([*asked, "lon=-0.1,lat=51.5,traffic=2"]) != 0
    assert "--grid lacks the input 'type'" in capsys.readouterr().err


def test_a_missing_column_is_named(folder, capsys):
    assert command(["predict", str(folder / "fit.mrgp"), "--at", str(folder / "lacking.csv")]) != 0
    told = capsys.readouterr().err
    assert "a column 'type' is needed, a covariate of the fit; the columns are lon, lat" in told


def test_a_report_tells_the_effects_and_that_its_map_has_none(folder, capsys):
    pytest.importorskip("plotly")
    page = folder / "page.html"
    asked = ["report", str(folder / "fit.mrgp"), "--out", str(page), "--grid"]
    assert command([*asked, "lon=-0.1:0.0:0.05,lat=51.4:51.5:0.05"]) == 0
    assert "Effects of covariates" in page.read_text()
    assert "type=road" in page.read_text()
    assert "are without the effect of type and traffic" in page.read_text()
    assert "between those of its kinds: park and road" in page.read_text()
    assert command([*asked, "lon=-0.1:0.0:0.05,lat=51.4:51.5:0.05,type=road"]) != 0
    assert "the page's map is without its effect" in capsys.readouterr().err
