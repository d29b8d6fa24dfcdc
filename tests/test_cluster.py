"""Work on a cluster of processes, one of which is killed: nothing is lost, results are the same."""

import contextlib
import os
import signal
import threading
import time
import warnings

import distributed
import numpy as np
import pytest
import xarray as xr

import mrgp
import zoo
from mrgp import _cluster, experiments
from mrgp._cluster import Alone, Cluster, team


@pytest.fixture(scope="module")
def cluster():
    """Two processes, which are started again where they are killed."""
    with _cluster._local(2, "") as client:
        yield client


@contextlib.contextmanager
def one_killed(client):
    """Kill a worker as soon as it is at work, and see that it was."""
    client.wait_for_workers(2, timeout=300)
    stop, killed, processes = threading.Event(), [], client.run(os.getpid)

    def kill():
        while not stop.is_set() and not killed:
            busy = [at for at, tasks in client.processing().items() if tasks]
            if len(busy) == 2:
                killed.append(processes[busy[0]])
                os.kill(killed[0], signal.SIGKILL)
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert killed


def slow_square(shared, task):
    time.sleep(0.05)
    return shared * task**2, len(os.sched_getaffinity(0))


def failing(shared, task):
    raise ValueError(f"task {task} is wrong")


def test_alone_is_in_order_and_asks_for_tasks_one_by_one():
    asked = []
    tasks = (asked.append(i) or i for i in range(3))
    for number, found in Alone().spread(lambda shared, task: shared + task, 10, tasks):
        assert found == 10 + number
        assert asked == list(range(number + 1))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"scheduler": "tcp://a:1", "workers": 2}, "compare: give a scheduler, or a number of"),
        ({"workers": 0}, "compare: workers is a whole number from 1 on; got 0"),
        ({"scheduler": "nonsense://a"}, "compare: no Dask scheduler answers at 'nonsense://a'"),
    ],
)
def test_mistakes_are_told(arguments, text):
    with pytest.raises(ValueError, match=text):
        mrgp.compare([mrgp.MRGP()], zoo.fused(), **arguments)


def test_what_is_no_scheduler_is_refused():
    with pytest.raises(TypeError, match=r"or a distributed\.Client; got int"):
        mrgp.compare([mrgp.MRGP()], zoo.fused(), scheduler=3)


@pytest.mark.thorough
def test_a_lost_worker_costs_its_tasks_alone(cluster):
    with one_killed(cluster), team(cluster) as everyone:
        found = dict(everyone.spread(slow_square, 2, range(40)))
    assert [found[i][0] for i in range(40)] == [2 * i**2 for i in range(40)]
    assert {cores for _, cores in found.values()} == {1}


@pytest.mark.thorough
def plus(shared, task):
    return len(shared) + task


def test_workers_that_come_later_have_tasks_too_and_much_that_is_shared_is_no_warning():
    asked = []
    tasks = (asked.append(i) or i for i in range(20))
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        warnings.catch_warnings(record=True) as told,
        distributed.LocalCluster(n_workers=1, **settings) as own,
        distributed.Client(own, set_as_default=False) as client,
    ):
        warnings.simplefilter("always")
        found = Cluster(client).spread(plus, np.zeros(2_000_000), tasks)
        first = next(found)
        assert len(asked) == 3
        own.scale(3)
        client.wait_for_workers(3, timeout=60)
        second = next(found)
        assert len(asked) == 8
        assert sorted([first, second, *found]) == [(i, 2_000_000 + i) for i in range(20)]
    assert not [one for one in told if "large graph" in str(one.message)]


def test_an_error_of_a_task_comes_back_as_it_is(cluster):
    with team(cluster) as everyone, pytest.raises(ValueError, match="task 0 is wrong"):
        list(everyone.spread(failing, None, [0]))


@pytest.mark.thorough
def test_lazy_maps_are_the_same_on_a_cluster_that_loses_a_worker(cluster):
    grid = xr.Dataset(coords={"x1": np.linspace(0.0, 5.0, 200)})
    fit = zoo.fit("network")
    wanted = mrgp.predict(fit, grid, task="no2", chunks={"x1": 10}).compute(scheduler="synchronous")
    lazy = mrgp.predict(fit, grid, task="no2", chunks={"x1": 10}, scheduler=cluster)
    with one_killed(cluster):
        found = lazy.chunk().compute(scheduler=cluster.get)
    xr.testing.assert_identical(found, wanted)


@pytest.mark.thorough
def test_comparisons_and_choices_are_the_same_on_a_cluster_that_loses_a_worker(
    cluster, as_users_see_it
):
    models = {"smooth": mrgp.MRGP(mrgp.RBF()), "rough": mrgp.MRGP(mrgp.Matern12()), "bad": "none"}
    asked = {"number": 3, "progress": None}
    wanted = mrgp.compare(models, zoo.fused(), **asked)
    with one_killed(cluster):
        found = mrgp.compare(models, zoo.fused(), scheduler=cluster, **asked)
    assert found.scores.equals(wanted.scores)
    assert found.failed == wanted.failed
    assert list(found.failed) == ["bad"]
    assert mrgp.choose(zoo.fused(), scheduler=cluster) == mrgp.choose(zoo.fused())


@pytest.mark.thorough
def test_an_experiment_is_the_same_on_a_cluster_that_loses_a_worker(cluster, tmp_path):
    def scores(name, **by):
        asked = {"seeds": range(8), "variants": ["noise-0.5"], "model_names": ["single-gp"]}
        found = experiments.run(experiments.find("dependent"), out=tmp_path / name, **asked, **by)
        kept = {"rmse", "crps", "coverage_95", "nlpd"}
        return {
            model: {k: v for k, v in rows.items() if k in kept}
            for model, rows in found["variants"]["noise-0.5"].items()
        }

    wanted = scores("alone")
    with one_killed(cluster):
        found = scores("spread", scheduler=cluster)
    assert scores("spread", workers=1) == found  # all are there: nothing is run again
    # Compiled for one core or for two, sums are taken in another order.
    assert found == {
        model: {score: pytest.approx(row, rel=1e-9) for score, row in rows.items()}
        for model, rows in wanted.items()
    }
