"""A fit with further values is the same parameters conditioned on all of them."""

import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.gp import further

NAMES = ("east", "time")
KERNEL = mrgp.Matern32(2.0, dims="east") * mrgp.Matern12(3.0, dims="time")
QUICK = mrgp.LBFGS(max_steps=1, starts=1, candidates=0)
AT = mrgp.boxes([[0.0, 1.5], [0.4, 2.0]], [[0.0, 1.5], [0.4, 6.0]], inputs=NAMES)


def truth(x):
    return 9.0 + np.sin(x[:, 0] + x[:, 1])


def sites(hours, places=(0.0, 1.0), missing=()):
    x = np.array([[p, float(t)] for t in hours for p in places])
    y = truth(x)
    y[list(missing)] = np.nan
    return mrgp.Observations(mrgp.points(x, inputs=NAMES), y, name="sites")


def windows(starts, width=2.0):
    low = np.array([[0.0, float(t)] for t in starts])
    support = mrgp.boxes(low, low + [2.0, width], inputs=NAMES)
    return mrgp.Observations(support, truth(low + 1.0), name="cells")


def made(method):
    first = mrgp.Dataset([sites(range(4), missing=[3]), windows([0, 2])])
    recipe = mrgp.MRGP(KERNEL, method=method, bias="offset")
    return mrgp.fit(recipe, first, optimiser=QUICK, progress=None)


@pytest.fixture(scope="module")
def along():
    return made("markov")


def together(first, second):
    support = mrgp.points(np.concatenate([first.support.x, second.support.x]), inputs=NAMES)
    return mrgp.Observations(support, np.concatenate([first.y, second.y]), name="sites")


MORE = {
    "later hours": sites(range(4, 6), missing=[0]),
    "earlier values": sites([-2.0, 1.5]),
    "a new site": sites([3.0, 4.0], places=(0.5,)),
}


@pytest.mark.parametrize("name", MORE)
def test_further_values_are_conditioning_on_all(along, name):
    longer = along.extend(mrgp.Dataset([MORE[name]]))
    every = mrgp.Dataset([together(sites(range(4), missing=[3]), MORE[name]), windows([0, 2])])
    assert_same(longer, along.condition(every))
    assert longer.counts == along.condition(every).counts
    assert longer.parameters().keys() == along.parameters().keys()


def ahead(fit):
    """Return places and windows after the last time, which the last state alone tells of."""
    end = float(fit.state.line.times[-1])
    low = np.array([[0.0, end], [0.5, end + 1.0], [0.0, end + 0.5], [1.0, end + 3.0]])
    return mrgp.boxes(low, low + [[0, 0], [0, 0], [2.0, 0], [0, 3.0]], inputs=NAMES)


def assert_same(one, two, joint=False):
    for support in (AT, ahead(two)):
        a, b = (mrgp.predict(fit, support, joint=joint) for fit in (one, two))
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-8)
        np.testing.assert_allclose(a.variance, b.variance, atol=1e-8)
        if joint:
            np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-8)


def test_one_hour_after_another_is_all_at_once(along):
    hour_by_hour = along
    for t in (4, 5):
        hour_by_hour = hour_by_hour.extend(mrgp.Dataset([sites([t])]))
    assert_same(hour_by_hour, along.extend(mrgp.Dataset([sites([4, 5])])))
    assert hour_by_hour.counts["sites", "value"] == (11, 1)
    assert hour_by_hour.counts["cells", "value"] == along.counts["cells", "value"]


def never_again(monkeypatch):
    """Fail where all values are conditioned on again."""

    def again(*_):
        raise AssertionError("all values were conditioned on again")

    monkeypatch.setattr("mrgp.inference.finishing.conditioned", again)


@pytest.fixture
def filtered_once(monkeypatch):
    never_again(monkeypatch)


LOCAL = mrgp.White(0.5, dims="east") * mrgp.Matern12(9.0, dims="time")
LATER = {
    "hours": [sites(range(4, 7), missing=[0])],
    "the last time itself": [sites([4.0], places=(0.3,)), windows([4.0])],
    "a new site, and irregular times": [sites([4.0, 4.7, 6.2], places=(0.0, 0.5))],
    "windows": [windows([4.0, 5.0, 6.0])],
    "windows elsewhere": [windows([4.5], width=1.0), sites([5.0])],
}


@pytest.fixture(scope="module", params=rest_thorough(["plain", "network"], "network"))
def hourly(request):
    kernel = (
        KERNEL if request.param == "plain" else KERNEL + LOCAL + mrgp.Matern32(4.0, dims="time")
    )
    first = mrgp.Dataset([sites(range(4), missing=[3]), windows([0, 2])])
    return mrgp.fit(mrgp.MRGP(kernel, method="markov"), first, optimiser=QUICK, progress=None)


@pytest.mark.parametrize("name", rest_thorough(LATER, "windows"))
def test_later_values_are_filtered_from_the_last_time_on(hourly, name, filtered_once, monkeypatch):
    longer = hourly.extend(mrgp.Dataset(LATER[name]))
    monkeypatch.undo()
    assert_same(longer, hourly.condition(longer.kept_data()), joint=True)


def always_open():
    """Return sites and running windows of two kinds, one or the other open at every time."""
    low = np.array([[0.0, t] for t in (0.0, 1.0, 2.0, 3.0, 4.0)])
    means = mrgp.boxes(low, low + [2.0, 3.0], inputs=NAMES)
    x = np.array([[[1.0, t], [1.0, t + 1.5], [1.0, t + 2.5]] for t in (0.0, 0.5, 2.0, 3.5, 4.0)])
    sums = mrgp.nodes(x, np.full((5, 3), [0.5, 0.25, 0.25]), inputs=NAMES)
    return [
        sites(range(8), missing=[3]),
        mrgp.Observations(means, truth(low + 1.0), name="cells"),
        mrgp.Observations(sums, truth(x[:, 1]), name="sums"),
    ]


def sums(times):
    x = np.array([[[1.0, t], [1.0, t + 1.5], [1.0, t + 2.5]] for t in times])
    support = mrgp.nodes(x, np.full((len(x), 3), [0.5, 0.25, 0.25]), inputs=NAMES)
    return mrgp.Observations(support, truth(x[:, 1]), name="sums")


@pytest.fixture(scope="module")
def running():
    recipe = mrgp.MRGP(KERNEL + LOCAL, method="markov", bias="offset")
    return mrgp.fit(recipe, mrgp.Dataset(always_open()), optimiser=QUICK, progress=None)


EARLIER = {
    "a value between": [sites([6.5])],
    "a window that opened before the last time": [windows([6.0], width=4.0)],
    "windows among those that are open": [windows([2.5, 5.0], width=1.5), sums([5.0, 3.0])],
    "the first times": [sites([0.5], places=(0.7,)), windows([0.2], width=9.0)],
    "a new site": [sites([2.0, 6.0, 9.0], places=(0.5,)), sums([6.0])],
}


@pytest.mark.parametrize("name", rest_thorough(EARLIER, "windows among those that are open"))
def test_earlier_values_are_filtered_from_there_on(running, name, filtered_once, monkeypatch):
    longer = running.extend(mrgp.Dataset(EARLIER[name]))
    later = longer.extend(mrgp.Dataset([sites([8.0]), windows([5.5], width=3.0)]))
    monkeypatch.undo()
    assert_same(longer, running.condition(longer.kept_data()), joint=True)
    assert_same(later, running.condition(later.kept_data()), joint=True)


def kept(fit):
    """Return what a fit believes of its terms at the steps that it has kept."""
    state = fit.state
    held, free = state.waypoints, len(state.line.slots)
    n = held.mean.shape[1] - free * np.shape(state.ratios[0])[-1]
    there = held.step >= 0
    steps = state.line.times[held.step[there]]
    beliefs = zip(held.mean[there][:, :n], held.covariance[there][:, :n, :n], strict=True)
    return dict(zip(steps, beliefs, strict=True))


def test_only_what_comes_after_is_filtered_again(monkeypatch):
    data = mrgp.Dataset([sites(range(64)), windows(range(0, 60, 2))])
    recipe = mrgp.MRGP(KERNEL, method="markov", bias="offset")
    fit = mrgp.fit(recipe, data, optimiser=QUICK, progress=None)
    steps, follow = [], further._filled
    monkeypatch.setattr(
        further,
        "_filled",
        lambda course, size: steps.append(len(course.line.times)) or follow(course, size),
    )
    late = (63.5, 62.5, 60.5, 40.5, 8.5)
    for time in late:
        fit = fit.extend(mrgp.Dataset([sites([time])]))
    # At most about twice as many steps as there are times since, and those that were added.
    assert all(n <= 2 * (64.0 - t) + 6 for n, t in zip(steps, late, strict=True)), steps
    hours = mrgp.fit(recipe, mrgp.Dataset([sites([0, 1])]), optimiser=QUICK, progress=None)
    for time in range(2, 40):
        hours = hours.extend(mrgp.Dataset([sites([time])]))
    times = np.array(sorted(kept(hours)))[::-1]
    back = times[0] - times
    assert times[0] == hours.state.line.times[-1]
    assert back[-1] == 39.0
    assert np.all(back[1:] + 1 <= 4 * (back[:-1] + 1))
    again = kept(hours.condition(hours.kept_data()))
    shared = sorted(set(again) & set(kept(hours)))
    assert len(shared) > 3
    for time in shared:
        for one, two in zip(kept(hours)[time], again[time], strict=True):
            np.testing.assert_allclose(one, two, atol=1e-9)


def test_places_that_are_one_by_the_reach_of_all_data_are_filtered_again():
    x = np.array([[p, t] for t in (0.0, 1.0, 2.0) for p in (0.0, 5e-6, 1.0)])
    first = mrgp.Observations(mrgp.points(x, inputs=NAMES), truth(x) + x[:, 0], name="sites")
    recipe = mrgp.MRGP(KERNEL + LOCAL, method="markov")
    fit = mrgp.fit(recipe, mrgp.Dataset([first]), optimiser=QUICK, progress=None)
    longer = fit.extend(mrgp.Dataset([sites([3.0], places=(0.0, 100.0))]))
    assert_same(longer, fit.condition(longer.kept_data()))


def test_times_that_are_one_by_the_reach_of_all_data_are_filtered_again():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0 + 5e-9], [0.0, 2.0], [1.0, 3.0]])
    first = mrgp.Observations(mrgp.points(x, inputs=NAMES), 5 * truth(x), name="sites")
    recipe = mrgp.MRGP(KERNEL, method="markov")
    fit = mrgp.fit(recipe, mrgp.Dataset([first]), optimiser=QUICK, progress=None)
    longer = fit.extend(mrgp.Dataset([sites([1.5, 20.0])]))
    assert_same(longer, fit.condition(longer.kept_data()))


def test_a_saved_fit_with_open_windows_goes_back(running, filtered_once, tmp_path):
    mrgp.save(running, tmp_path / "fit")
    more = mrgp.Dataset([sites([4.5, 8.0]), sums([4.0])])
    assert_same(mrgp.load(tmp_path / "fit").extend(more), running.extend(more))


def test_tasks_that_share_latent_functions_go_on(monkeypatch):
    def seen(hours):
        one, two = sites(hours), sites(hours, places=(0.5,))
        return mrgp.Dataset([one.replace(task="a"), two.replace(task="b", name="others")])

    recipe = mrgp.MRGPRN(kernel_f=KERNEL, kernel_w="constant", latents=2, method="markov")
    fit = mrgp.fit(recipe, seen(range(6)), optimiser=QUICK, progress=None)
    never_again(monkeypatch)
    longer = fit.extend(seen([3.5, 6.0]))
    monkeypatch.undo()
    again = fit.condition(longer.kept_data())
    for support in (AT, ahead(again)):
        for task in ("a", "b"):
            one, two = (mrgp.predict(f, support, task=task) for f in (longer, again))
            np.testing.assert_allclose(one.mean, two.mean, atol=1e-8)
            np.testing.assert_allclose(one.variance, two.variance, atol=1e-8)


def test_before_the_first_time_everything_is_filtered_again(running):
    longer = running.extend(mrgp.Dataset([sites([-2.0])]))
    assert_same(longer, running.condition(longer.kept_data()))


def test_a_fit_through_inducing_places_goes_on_too(monkeypatch):
    places = np.array([[0.0, 0.0], [0.6, 0.0], [1.3, 0.0], [2.0, 0.0]])
    recipe = mrgp.MRGP(KERNEL + LOCAL, method="markov", inducing=places)
    fit = mrgp.fit(recipe, mrgp.Dataset(always_open()), optimiser=QUICK, progress=None)
    never_again(monkeypatch)
    more = [sites([6.5, 9.0], places=(0.5, 1.0)), windows([5.5], width=3.0)]
    longer = fit.extend(mrgp.Dataset(more))
    monkeypatch.undo()
    assert_same(longer, fit.condition(longer.kept_data()))


def test_a_saved_fit_goes_on(hourly, filtered_once, tmp_path):
    mrgp.save(hourly, tmp_path / "fit")
    more = mrgp.Dataset([sites([4.0, 5.0])])
    assert_same(mrgp.load(tmp_path / "fit").extend(more), hourly.extend(more))


def test_hours_with_other_numbers_of_values_share_a_program(hourly, compiled):
    longer = hourly.extend(mrgp.Dataset([sites([5.0])]))
    mrgp.predict(longer, mrgp.points([[0.0, 6.0], [0.0, 7.0]], inputs=NAMES))
    compiled.clear()
    longer = longer.extend(mrgp.Dataset([sites([6.0], missing=[0])]))
    mrgp.predict(longer, mrgp.points([[0.0, 7.0], [0.0, 8.0]], inputs=NAMES))
    assert compiled == []


def test_exact_fits_are_extended_too(along):
    one, two = (f.extend(mrgp.Dataset([sites([4])])) for f in (made("exact"), along))
    a, b = (mrgp.predict(fit, AT) for fit in (one, two))
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-6)


def test_what_cannot_be_extended_is_refused(along, as_users_see_it):
    other = mrgp.Dataset([sites([4]).replace(name="others")])
    with pytest.raises(ValueError, match="extend takes more data of the sources and inputs of"):
        along.extend(other)
    sparse = mrgp.fit(
        mrgp.MRGP(KERNEL, method="collapsed", inducing=4),
        mrgp.Dataset([sites(range(4))]),
        optimiser=QUICK,
        progress=None,
    )
    with pytest.raises(ValueError, match="does not keep its data; call condition with all of"):
        sparse.extend(mrgp.Dataset([sites([4])]))


def kinds(hours, places=(0.0, 1.0, 2.0), names=("park", "road", "road")):
    """Return values at sites, with a category of each that came in a table."""
    x = np.array([[p, float(t)] for t in hours for p in places])
    kind = np.tile(np.array(names), len(hours))
    support = mrgp.points(x, inputs=NAMES, covariates={"kind": kind})
    return mrgp.Observations(support, truth(x) + 3.0 * (kind == "road"), name="sites")


@pytest.mark.parametrize("method", rest_thorough(["markov", "exact"], "markov"))
def test_further_values_bring_their_categories_in_any_code_book(method):
    recipe = mrgp.MRGP(KERNEL, method=method)
    fit = mrgp.fit(recipe, mrgp.Dataset([kinds(range(4))]), optimiser=QUICK, progress=None)
    # Alone, "road" is the first category of the new rows; it is the second of the fit's.
    longer = fit.extend(mrgp.Dataset([kinds([4.0], places=(1.0,), names=("road",))]))
    at = mrgp.points([[1.5, 4.5]], inputs=NAMES, covariates={"kind": ["road"]})
    x = np.array([[p, float(t)] for t in range(4) for p in (0.0, 1.0, 2.0)] + [[1.0, 4.0]])
    kind = np.array(["park", "road", "road"] * 4 + ["road"])
    support = mrgp.points(x, inputs=NAMES, covariates={"kind": kind})
    every = mrgp.Observations(support, truth(x) + 3.0 * (kind == "road"), name="sites")
    again = fit.condition(mrgp.Dataset([every]))
    one, two = mrgp.predict(longer, at), mrgp.predict(again, at)
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9)
    np.testing.assert_allclose(one.variance, two.variance, rtol=1e-8)
    with pytest.raises(ValueError, match="farm"):
        fit.extend(mrgp.Dataset([kinds([4.0], places=(1.0,), names=("farm",))]))
