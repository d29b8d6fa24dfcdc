"""`mrgp report`: what it writes, what it says, and how it fails."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.cli import command
from mrgp.report import write_report

pytestmark = pytest.mark.usefixtures("as_users_see_it", "plotly")
CONFIG = """
inputs = ["east", "north"]

[sources.sensors]
file = "sensors.csv"
task = "no2"
y = "no2"
x = ["east", "north"]
units = "ug/m3"

[model]
recipe = "MRGP"

[model.optimiser]
name = "LBFGS"
max_steps = 2
starts = 1
candidates = 0
"""
GRID = "east=0:10:2,north=0:10:5"


def frame(seed, count):
    rng = np.random.default_rng(seed)
    east, north = rng.uniform(0, 10, (2, count))
    return pd.DataFrame({"east": east, "north": north, "no2": 20 + east + rng.normal(size=count)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("report")
    frame(0, 15).to_csv(made / "sensors.csv", index=False)
    frame(1, 6).to_csv(made / "test.csv", index=False)
    (made / "city.toml").write_text(CONFIG)
    code = command(["fit", str(made / "city.toml"), "-o", str(made / "fit.mrgp"), "--quiet"])
    assert code == 0
    return made


def run(capsys, *arguments):
    capsys.readouterr()
    code = command(["report", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_a_page_is_written_with_scores_of_values_left_out_and_held_out(folder, tmp_path, capsys):
    out = tmp_path / "new" / "page.html"
    fit, test = folder / "fit.mrgp", folder / "test.csv"
    code, said, noted = run(capsys, fit, "-o", out, "--data", test, "--title", "Our <city>")
    assert code == 0, noted
    assert said.startswith(f"wrote {out}: ")
    assert "checks: held out, left out" in said
    assert "places" in noted
    text = out.read_text()
    assert "<title>Our &lt;city&gt;</title>" in text
    assert "Held-out values" in text
    assert "MRGP: One field" in text
    assert text.count("<script") == text.count("</script>")


def test_sites_have_the_names_of_a_column_or_of_a_table(folder, tmp_path, capsys):
    for name in ("fit.mrgp", "fit.mrgp.toml", "sensors.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    asked = (tmp_path / "fit.mrgp", "-o", tmp_path / "page.html", "--grid", GRID, "--quiet")
    places = frame(0, 15)
    named = places.assign(site=[f"street {i}" for i in range(15)])
    named[["east", "north", "site"]].to_csv(tmp_path / "sites.csv", index=False)
    assert run(capsys, *asked, "--sites", tmp_path / "sites.csv")[0] == 0
    assert "street 14" in (tmp_path / "page.html").read_text()
    named.to_csv(tmp_path / "sensors.csv", index=False)
    assert run(capsys, *asked)[0] == 0
    assert "street 14" in (tmp_path / "page.html").read_text()
    places[["east", "north"]].to_csv(tmp_path / "sites.csv", index=False)
    code, _, noted = run(capsys, *asked, "--sites", tmp_path / "sites.csv")
    assert code == 1
    assert "needs a column of names" in noted


def test_json_has_the_scores_of_evaluate(folder, tmp_path, capsys):
    fit, test = folder / "fit.mrgp", folder / "test.csv"
    out = tmp_path / "page.html"
    asked = (fit, "-o", out, "--grid", GRID, "--data", test, "--json", "--quiet")
    code, said, noted = run(capsys, *asked)
    assert (code, noted) == (0, "")
    found = json.loads(said)
    assert found["grid"] == {"east": 6, "north": 3}
    assert found["bytes"] == out.stat().st_size
    command(["evaluate", str(fit), str(test), "--json"])
    expected = json.loads(capsys.readouterr().out)
    held_out = found["scores"]["held out"]["sensors, no2"]
    assert held_out == pytest.approx(expected["sensors, no2"])
    loo = mrgp.load(fit).leave_one_out().scores()["sensors"]
    assert found["scores"]["left out"]["sensors, no2"] == pytest.approx(loo)


def test_a_quiet_user_hears_nothing(folder, tmp_path, capsys):
    asked = (folder / "fit.mrgp", "-o", tmp_path / "page.html", "--grid", GRID, "--quiet")
    assert run(capsys, *asked) == (0, "", "")


def test_files_that_have_changed_are_said_not_to_be_shown(folder, tmp_path, capsys):
    for name in ("fit.mrgp", "fit.mrgp.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    asked = (tmp_path / "fit.mrgp", "-o", tmp_path / "page.html", "--grid", GRID)
    code, _, noted = run(capsys, *asked)
    assert code == 0
    assert "cannot be read again" in noted
    frame(5, 15).to_csv(tmp_path / "sensors.csv", index=False)
    code, _, noted = run(capsys, *asked)
    assert code == 0
    assert "other values now" in noted


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["FOLDER/none.mrgp"], "there is no file"),
        (["FOLDER/sensors.csv"], "sensors.csv"),
        (["FOLDER/fit.mrgp", "--grid", "east=0:10:2"], "--grid lacks the input 'north'"),
        (["FOLDER/fit.mrgp", "--grid", "east=0:9:1,nort=0"], "Did you mean 'north'"),
        (["FOLDER/fit.mrgp", "-o", "FOLDER"], "must end in .html"),
        (["FOLDER/fit.mrgp", "-o", "OUT/page.pdf"], "must end in .html or .htm"),
        (["FOLDER/fit.mrgp", "-o", "OUT/file/page.html"], "file"),
        (["FOLDER/fit.mrgp", "-o", "OUT/taken.html"], "is a folder; give the name of a file"),
        (["FOLDER/fit.mrgp", "--task", "no"], "--task 'no' was not fitted"),
        (["FOLDER/fit.mrgp", "--source", "sensors"], "give --data too"),
        (["FOLDER/fit.mrgp", "--data", "FOLDER/none.csv"], "There is no file"),
    ],
)
def test_mistakes_are_told_in_a_few_lines_and_leave_no_file(
    folder, tmp_path, capsys, arguments, text
):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken.html").mkdir()
    given = [a.replace("FOLDER", str(folder)).replace("OUT", str(tmp_path)) for a in arguments]
    if "-o" not in given:
        given += ["-o", str(tmp_path / "page.html")]
    code, said, noted = run(capsys, *given)
    assert (code, said) == (1, "")
    assert text in noted
    assert "Traceback" not in noted
    assert "fault of mrgp" not in noted
    assert not (tmp_path / "page.html").exists()


def test_an_unknown_option_is_a_wrong_command(folder, capsys):
    assert run(capsys, folder / "fit.mrgp", "--threshold", "3")[0] == 2


def test_without_plotly_the_extra_is_named(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    code, _, noted = run(capsys, folder / "fit.mrgp", "-o", tmp_path / "page.html")
    assert code == 1
    assert "pip install 'mrgp[report]'" in noted
    with pytest.raises(ImportError, match="mrgp\\[report\\]"):
        write_report(mrgp.load(folder / "fit.mrgp"), tmp_path / "page.html")


def test_shapes_are_named_by_the_text_that_tells_them_apart(tmp_path, capsys):
    """Counts in three shapes: the page has their names, that it is of a rate, and no noise."""
    shapes = []
    for i, name in enumerate(("Ashe", "Burke", "Clay")):
        west = -80.0 + 0.5 * i
        ring = [[west, 35.0], [west + 0.5, 35.0], [west + 0.5, 35.6], [west, 35.6], [west, 35.0]]
        about = {"county": name, "state": "N", "cases": 2 + i, "births": 900.0}
        geometry = {"type": "Polygon", "coordinates": [ring]}
        shapes.append({"type": "Feature", "properties": about, "geometry": geometry})
    text = json.dumps({"type": "FeatureCollection", "features": shapes})
    (tmp_path / "areas.geojson").write_text(text)
    config, fit, page = (tmp_path / n for n in ("mrgp.toml", "fit.mrgp", "page.html"))
    areas = [str(tmp_path / "areas.geojson"), "--value", "cases"]
    assert command(["init", *areas, "--out", str(config), "--quiet"]) == 0
    assert 'exposure = "births"' in config.read_text()
    assert command(["fit", str(config), "-o", str(fit), "--quiet"]) == 0
    assert run(capsys, fit, "-o", page)[0] == 0
    said = page.read_text()
    for words in (
        "Burke",
        "The map is of a rate: counts for one unit of their exposure.",
        "Values scatter by their likelihood: those of areas as poisson.",
        "It was not compared with simple rules: areas has three places, of which too few are left",
    ):
        assert words in said, words
