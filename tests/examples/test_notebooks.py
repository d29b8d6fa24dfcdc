"""Every tutorial is a notebook as well: valid, with the code of its script, and it runs."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from examples.test_tutorials import CLAIMS, NAMES, ROOT, skip_without_data

MADE = runpy.run_path(str(ROOT / "examples" / "_notebooks.py"))
PROGRESS = re.compile(r"[\w\[\], -]+: .*(step|done|start|compiling|looking|preparing|MR?GP)")
RUN = """
import sys, json, warnings
import nbclient, nbformat
path, folder = sys.argv[1:]
notebook = nbformat.read(path, as_version=4)
client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}})
client.execute()
nbformat.write(notebook, path)
"""


def code_of(notebook):
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_valid_and_has_the_code_of_its_script(name):
    made = MADE["notebook"](name)
    nbformat.validate(made)
    script = (ROOT / "examples" / f"{name}.py").read_text()
    first, *rest = [text for _, text in MADE["pieces"](script)]
    setting, beginning, *others = code_of(made)
    assert setting.startswith("QUICK = False")
    assert others == rest
    imports = [line for line in first.splitlines() if "import" in line and "_telling" not in line]
    assert all(line in beginning for line in imports)
    assert "_telling" not in beginning
    compile(beginning, name, "exec")
    words = "".join("".join(c["source"]) for c in made["cells"] if c["cell_type"] == "markdown")
    assert words.startswith("# ")
    assert "--8<--" not in words
    assert "](" not in words


def test_one_command_writes_them_all(tmp_path):
    MADE["write"](tmp_path / "notebooks")
    written = {p.stem: json.loads(p.read_text()) for p in (tmp_path / "notebooks").iterdir()}
    assert written == {name: MADE["notebook"](name) for name in NAMES}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_keeps_the_claims(name, tmp_path):
    skip_without_data(name)
    made = MADE["notebook"](name)
    setting = next(c for c in made["cells"] if c["cell_type"] == "code")
    setting["source"] = ["QUICK = True"]
    last = {"cell_type": "code", "id": "found", "metadata": {}, "outputs": []}
    last |= {"execution_count": None}
    told = "import json\nprint(json.dumps({k: float(v) for k, v in story.found.items()}))"
    made["cells"].append(last | {"source": told})
    path = tmp_path / f"{name}.ipynb"
    path.write_text(json.dumps(made))
    # A process of its own: a running kernel and the threads of a test do not mix.
    done = subprocess.run(
        [sys.executable, "-c", RUN, path, tmp_path],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    ran = json.loads(Path(path).read_text())
    outputs = [o for c in ran["cells"] if c["cell_type"] == "code" for o in c["outputs"]]
    assert any("image/png" in o.get("data", {}) for o in outputs)
    # Nothing but what fits say of how far they are: "fit: done, 29 steps".
    told = "".join("".join(o["text"]) for o in outputs if o.get("name") == "stderr")
    assert [line for line in told.splitlines() if not PROGRESS.match(line)] == []
    explored = [c for c in ran["cells"] if ".explore(" in "".join(c["source"])]
    assert len(explored) == (name == "sensors_and_satellite")
    for cell in explored:
        (shown,) = (o["data"] for o in cell["outputs"] if "data" in o)
        assert "Plotly.newPlot" in "".join(shown["text/html"])
        # The drawing library is in the output: nothing is fetched.
        assert "<script src=" not in "".join(shown["text/html"])
        assert len("".join(shown["text/html"])) > 3_000_000
    figures = json.loads("".join(outputs[-1]["text"]))
    broken = [claim for claim, holds in CLAIMS[name](figures).items() if not holds]
    assert not broken, figures
