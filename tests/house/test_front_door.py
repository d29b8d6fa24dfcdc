"""The front door: sorted, documented, quiet, and harmless to the program that opens it."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import mrgp

OPTIONAL = ("geopandas", "shapely", "pyproj", "pyarrow", "zarr", "blackjax", "dask", "sklearn")
HEAVY = ("matplotlib", "pandas", "xarray", "typer", "pydantic", "torch", "tensorflow")


def in_fresh_python(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


def test_all_is_sorted_and_complete():
    assert list(mrgp.__all__) == sorted(mrgp.__all__, key=_isort_key)
    public = {n for n, v in vars(mrgp).items() if not n.startswith("_") and not inspect.ismodule(v)}
    assert public == set(mrgp.__all__)


def _isort_key(name):
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("name", mrgp.__all__)
def test_every_public_name_is_documented_in_one_imperative_or_noun_line(name):
    doc = inspect.getdoc(getattr(mrgp, name))
    assert doc, f"{name} has no docstring"
    first = doc.splitlines()[0]
    assert first.endswith((".", ":")), first
    assert len(first) <= 100


def test_the_front_door_has_no_logic():
    tree = ast.parse(Path(mrgp.__file__).read_text())
    assert {type(n) for n in tree.body} <= {ast.Expr, ast.ImportFrom, ast.Assign}


def test_import_has_no_side_effects():
    out, err = in_fresh_python(
        "import warnings, equinox, jax, jaxtyping, scipy.cluster.vq, scipy.optimize, scipy.stats\n"
        "before = dict(jax.config.values), list(warnings.filters)\n"
        "import mrgp\n"
        "changed = {k for k, v in jax.config.values.items() if before[0].get(k) != v}\n"
        "assert not changed, changed\n"
        "assert warnings.filters == before[1]\n"
    )
    assert (out, err) == ("", "")


def test_import_leaves_optional_and_heavy_libraries_alone():
    in_fresh_python(
        "import sys, mrgp\n"
        f"found = [m for m in {(*OPTIONAL, *HEAVY)!r} if m in sys.modules]\n"
        "assert not found, found\n"
    )


def test_a_float32_host_program_is_unharmed():
    in_fresh_python(
        "import jax, jax.numpy as jnp, numpy as np, mrgp\n"
        "x = jnp.linspace(0.0, 1.0, 5)\n"
        "y = np.asarray(x)\n"
        "data = mrgp.Dataset([mrgp.Observations(mrgp.points(y[:, None]), y)])\n"
        "fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=3))\n"
        "pred = mrgp.predict(fit, mrgp.points([[0.5]]))\n"
        "assert isinstance(pred.mean, np.ndarray) and pred.mean.dtype == np.float64\n"
        "assert all(isinstance(v, np.ndarray) for v in fit.parameters().values())\n"
        "leaves = jax.tree.leaves((fit.model, fit.state))\n"
        "assert not any(isinstance(v, jax.Array) for v in leaves)\n"
        "k = mrgp.RBF(lengthscale=0.3)([[0.0]], [[1e-9]])\n"
        "assert isinstance(k, np.ndarray) and k.dtype == np.float64\n"
        "assert jnp.ones(2).dtype == jnp.float32 and not jax.config.jax_enable_x64\n"
        "assert (x * 2).dtype == jnp.float32\n"
    )


def test_no_prints_and_no_future_annotations():
    root = Path(mrgp.__file__).parent
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text())
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        assert not [c for c in calls if getattr(c.func, "id", None) == "print"], path
        assert "from __future__ import annotations" not in path.read_text(), path
