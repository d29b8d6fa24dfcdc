"""Sums over rows on several devices, and on two processes, are those of one device."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import mrgp
from mrgp.devices import each_share, over_devices, shares, sum_shared

PROGRAM = """
import json, os, sys
import jax
if len(sys.argv) > 2:
    jax.distributed.initialize(sys.argv[2], num_processes=2, process_id=int(sys.argv[3]))
import contextlib
import numpy as np
import mrgp

rng = np.random.default_rng(0)
x, lower = rng.uniform(0, 6, (301, 2)), rng.uniform(0, 5, (57, 2))
fine = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]) + x[:, 1], name="fine", task="a")
cells = mrgp.boxes(lower, lower + 0.7)
coarse = mrgp.Observations(cells, np.sin(lower[:, 0]), name="coarse", task="a")
data, tasks = mrgp.Dataset([fine, coarse]), mrgp.Dataset([fine, coarse.replace(task="b")])
models = {
    "collapsed": (mrgp.MRGP(method="collapsed", inducing=12), data),
    "svgp": (mrgp.MRGP(method="svgp", inducing=12), data),
    "network": (mrgp.MRGPRN(latents=2, inducing_f=8, inducing_w=5), tasks),
}
several, found = jax.device_count() > 1, {"devices": jax.device_count()}
with mrgp.over_devices() if several else contextlib.nullcontext(), jax.enable_x64(True):
    for name, (model, seen) in models.items():
        f = mrgp.objective(model, seen)
        compiled = jax.jit(jax.value_and_grad(f)).lower(f.start).compile()
        value, slope = compiled(f.start)
        slopes = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(slope)])
        found[name] = [float(value), *map(float, slopes)]
        assert ("all-reduce" in compiled.as_text()) == several, name
    brief = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    fit = mrgp.fit(models["collapsed"][0], data, optimiser=brief, progress=None)
    found["fit"] = mrgp.predict(fit, mrgp.points(x[:4])).mean.tolist()
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
"""


def started(path, devices, *more):
    """Start the program with so many devices on processors."""
    flag = f"--xla_force_host_platform_device_count={devices}"
    environment = os.environ | {
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flag}",
        "PYTHONPATH": str(Path(mrgp.__file__).parents[1]),
    }
    command = [sys.executable, "-c", PROGRAM, str(path), *more]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def ended(*processes):
    for process in processes:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors[-3000:]


def same(path, wanted, devices):
    found = json.loads(path.read_text())
    assert found.pop("devices") == devices
    for name, values in found.items():
        np.testing.assert_allclose(values, wanted[name], rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.thorough
def test_eight_devices_and_two_processes_find_what_one_device_finds(tmp_path):
    ended(started(tmp_path / "one", 1))
    wanted = json.loads((tmp_path / "one").read_text())
    ended(started(tmp_path / "eight", 8))
    same(tmp_path / "eight", wanted, 8)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    paths = [tmp_path / f"process-{i}" for i in range(2)]
    ended(*(started(path, 2, address, str(i)) for i, path in enumerate(paths)))
    for path in paths:
        same(path, wanted, 4)


def test_a_mesh_of_one_device_changes_nothing():
    recipe = mrgp.MRGP(mrgp.RBF(), method="collapsed", inducing=8)
    x = np.linspace(0.0, 6.0, 30)[:, None]
    f = mrgp.objective(recipe, mrgp.Dataset([mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]))]))
    with jax.enable_x64(True):
        alone = float(f(f.start))
        with over_devices(1):
            assert float(f(f.start)) == alone


def test_shares_cover_every_row_once():
    x = np.arange(7.0)
    with jax.enable_x64(True), over_devices(1):
        total = sum_shared(lambda rows: (jax.numpy.asarray(x)[rows]).sum(), 7)
        assert float(total) == x.sum()
        assert shares() == 1
        inside = each_share(lambda part: part * shares(), jax.numpy.ones((1, 2)))
        assert inside.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("count", [0, 10**6])
def test_devices_that_are_not_there_are_refused(count):
    with pytest.raises(ValueError, match=rf"JAX has \d+ devices; got {count}.*XLA_FLAGS"):
        over_devices(count).__enter__()


def test_what_is_no_device_is_refused(as_users_see_it):
    with pytest.raises(TypeError, match=r"or some of jax\.devices\(\); got list"):
        over_devices(["gpu"]).__enter__()
