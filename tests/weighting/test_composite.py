"""Composite weights against loops, finite differences, copies, and their own account."""

import dataclasses
import warnings

import equinox as eqx
import jax
import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp import datasets
from mrgp.data import Scaling
from mrgp.inference import Problem, Silent
from mrgp.inference.each_alone import Separate, composite_optimum
from mrgp.parameters import partition, unwrap
from mrgp.weighting.clustering import cluster_rows
from mrgp.weighting.curvature import curvature
from mrgp.weighting.hyperscores import kernel_sandwich
from mrgp.weighting.sandwich import freed_residuals
from mrgp.weighting.smoothed import Smoothed
from reference import composite as slow
from shorthand import build_objective, linear_of

WAVE = mrgp.MRGP(kernel=mrgp.RBF())
QUIET = {"progress": None}


def copies(count, replicate=False, seed=0, noise=0.3):
    """The same values `count` times, and perhaps a replicate with errors of its own."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 12.0, 80)
    clean = np.sin(x)
    y = clean + noise * rng.standard_normal(80)
    given = [y] * count + [clean + noise * rng.standard_normal(80)] * replicate
    return mrgp.Dataset(
        mrgp.Observations(mrgp.points(x[:, None]), values, name=f"source {i}")
        for i, values in enumerate(given)
    )


@pytest.fixture(scope="module")
def small():
    """A model at its parameters of each source alone, with all that the reference needs."""
    data = datasets.dependent(3).data
    data = mrgp.Dataset([data["fine"][:40], data["coarse"][:13]])
    with jax.enable_x64(True):
        model = composite_optimum(Problem.of(WAVE, data), Silent()).model
        records = build_objective(model, data, Scaling.of(data), None).records
        kernels, read = linear_of(model, records)
        prior = np.asarray(mrgp.gp.prior_covariance(kernels, read, model.solver.rule))
        noise, values = np.asarray(read.noise), np.asarray(read.residual)
    return data, model, records, prior, noise, values


def smoothed_by(data, model, clusters="overlap"):
    with jax.enable_x64(True):
        records = Scaling.of(data).records(data)
        return Smoothed.of(model, records, cluster_rows(data, clusters))


@pytest.mark.parametrize("clusters", ["overlap", "halves"])
def test_scores_equal_a_loop_over_clusters(small, clusters):
    data, model, _, prior, noise, values = small
    if clusters == "halves":
        clusters = [np.arange(40) // 20, np.arange(13) // 7]
    smoothed = smoothed_by(data, model, clusters)
    rows, sources, basis = smoothed.clusters, smoothed.sources, smoothed.basis
    s = slow.smoother(prior, noise)
    u = slow.freed(s, values / np.sqrt(noise), rows)
    found = smoothed.sandwich()
    np.testing.assert_allclose(basis.T @ basis, s, atol=1e-10)
    np.testing.assert_allclose(smoothed.residual, u, rtol=1e-6, atol=1e-8)
    own, shared = slow.sums(s, u, sources, rows)
    np.testing.assert_allclose(found.own.sum(0), own, rtol=1e-6)
    np.testing.assert_allclose(found.shared.sum(0), shared, rtol=1e-6)
    np.testing.assert_allclose(found.dimension, np.trace(s), rtol=1e-9)
    largest = max(
        np.linalg.eigvalsh(s[np.ix_(rows == b, rows == b)]).max() for b in np.unique(rows)
    )
    np.testing.assert_allclose(smoothed.leverage, largest, rtol=1e-8)
    pulls = [basis[:, rows == b] @ u[rows == b] for b in np.unique(rows)]
    expected = sum(np.outer(g, g) for g in pulls)
    np.testing.assert_allclose(found.variability, expected, rtol=1e-5, atol=1e-8)


def test_large_clusters_are_freed_by_their_features():
    rng = np.random.default_rng(0)
    basis = 0.1 * rng.standard_normal((4, 30))
    residual, clusters = rng.standard_normal(30), np.repeat([0, 1], [18, 12])
    freed, _ = freed_residuals(basis, residual, clusters)
    for b in (0, 1):
        rows = clusters == b
        inner = np.eye(rows.sum()) - basis[:, rows].T @ basis[:, rows]
        np.testing.assert_allclose(
            inner @ freed[rows], np.real(slow.sqrtm(inner)) @ residual[rows], rtol=1e-9
        )


def test_public_weights_are_those_of_the_loop(small):
    data, model, _, prior, noise, values = small
    smoothed = smoothed_by(data, model)
    rows, sources, basis = smoothed.clusters, smoothed.sources, smoothed.basis
    s = slow.smoother(prior, noise)
    u = slow.freed(s, values / np.sqrt(noise), rows)

    def weigh(**arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mrgp.composite_weights(WAVE, data, **arguments, **QUIET)

    expected = slow.ratio(s, u, sources, rows)
    np.testing.assert_allclose(weigh(cap=False)["fine"], expected, rtol=1e-5)
    per_source = slow.ratio_per_source(s, u, sources, rows)
    np.testing.assert_allclose(
        list(weigh(per_source=True, cap=False).values()), per_source, rtol=1e-5
    )
    expected = slow.ribatet(s, u, sources, rows)
    np.testing.assert_allclose(weigh(rule="ribatet", cap=False)["fine"], expected, rtol=1e-5)
    scores = np.stack([basis[:, rows == b] @ u[rows == b] for b in np.unique(rows)])
    found = weigh(rule="lyddon", cap=False)
    expected = slow.lyddon(basis @ basis.T, scores, 1)
    np.testing.assert_allclose(found["fine"], expected, rtol=1e-5)


def test_kernel_scores_and_information_equal_finite_differences(small):
    data, model, records, *_ = small
    rows = np.concatenate(cluster_rows(data, "source").labels)
    with jax.enable_x64(True):
        found = kernel_sandwich(model, records, rows, rows)
        trained, frozen = partition(model)
        flat, unravel = jax.flatten_util.ravel_pytree(trained.solver.kernels)

        def evidence(vector, process):
            moved = jax.tree.map(lambda x: x, trained)
            solver = dataclasses.replace(moved.solver, kernels=unravel(vector))
            moved = dataclasses.replace(moved, solver=solver)
            whole = eqx.combine(moved, frozen)
            kernels, read = linear_of(whole.alone(process), (records[process],))
            prior = np.asarray(mrgp.gp.prior_covariance(kernels, read, model.solver.rule))
            return slow.log_evidence(prior, np.asarray(read.noise), np.asarray(read.residual))

        step = 1e-4
        size = len(flat)
        moves = step * np.eye(size)
        slopes = np.array(
            [
                [(evidence(flat + m, a) - evidence(flat - m, a)) / (2 * step) for m in moves]
                for a in (0, 1)
            ]
        )
        total = lambda v: evidence(v, 0) + evidence(v, 1)  # noqa: E731
        hessian = np.array(
            [
                [
                    (total(flat + m + n) - total(flat + m - n) - total(flat - m + n)
                     + total(flat - m - n)) / (4 * step**2)
                    for n in moves
                ]
                for m in moves
            ]
        )  # fmt: skip
    # With one cluster a source, J is the sum of squares of the sources' total scores.
    np.testing.assert_allclose(found.variability, slopes.T @ slopes, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.information, -hessian, rtol=1e-3, atol=1e-3)


def test_kernel_scores_of_clusters_sum_those_of_observations(small):
    _, model, records, *_ = small
    sources = np.repeat([0, 1], [40, 13])
    with jax.enable_x64(True):
        each = kernel_sandwich(model, records, sources, np.arange(53))
        halves = np.concatenate([np.arange(40) // 20, np.arange(13) // 7])
        found = kernel_sandwich(model, records, sources, halves)
        everything = kernel_sandwich(model, records, sources, np.zeros(53, int))
    # The total is the gradient, which is nearly zero where the parameters were fitted.
    assert np.trace(everything.variability) < 0.1 * np.trace(each.variability)
    assert np.linalg.matrix_rank(everything.variability, tol=1e-9) == 1
    assert found.own.shape == (2, 2)
    np.testing.assert_allclose(each.own.sum(1), each.shared.sum(1), rtol=1e-9)


def test_the_lift_has_the_covariance_of_coordinates_with_the_field(small):
    data, model, _, prior, noise, _ = small
    lifted = prior @ smoothed_by(data, model).lift
    explained = prior - prior @ np.linalg.solve(prior + np.diag(noise), prior)
    # What the field at the data has left of variance is what these coordinates explain.
    np.testing.assert_allclose(lifted @ lifted.T, explained, atol=1e-5)


@pytest.mark.parametrize(("count", "weight"), rest_thorough([(2, 0.5), (3, 1 / 3)], 0))
def test_copies_share_one_weight_among_them(count, weight):
    found = mrgp.composite_weights(WAVE, copies(count), **QUIET)
    assert all(abs(value - weight) < 1e-6 for value in found.values())


def test_weighted_copies_are_as_sure_as_one():
    data = copies(2)
    at = mrgp.points(np.linspace(0.0, 12.0, 50)[:, None])
    one = mrgp.fit(WAVE, mrgp.Dataset([data["source 0"]]), **QUIET)
    for hyperparameters in ("refit", "keep"):
        both = mrgp.fit(WAVE, data, weights="auto", hyperparameters=hyperparameters, **QUIET)
        ratio = mrgp.predict(both, at).std / mrgp.predict(one, at).std
        assert np.all(np.abs(ratio - 1) < 0.05)
        assert both.weights == pytest.approx(dict.fromkeys(both.weights, 0.5), abs=1e-6)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:composite_weights. the standard error")
def test_a_replicate_keeps_its_weight_beside_two_copies():
    weights = np.array(
        [
            list(
                mrgp.composite_weights(
                    WAVE, copies(2, replicate=True, seed=seed), per_source=True, **QUIET
                ).values()
            )
            for seed in range(4)
        ]
    )
    first, second, replicate = weights.mean(0)
    assert abs(first - 0.5) < 0.08
    assert abs(second - 0.5) < 0.08
    assert replicate > 0.85


@pytest.mark.thorough
def test_sparse_models_weigh_as_exact_ones():
    data = datasets.dependent(0).data
    exact = mrgp.composite_weights(WAVE, data, **QUIET)
    sparse = mrgp.composite_weights(
        mrgp.MRGP(kernel=mrgp.RBF(), inducing=60, method="collapsed"), data, **QUIET
    )
    assert sparse["fine"] == pytest.approx(exact["fine"], abs=0.01)
    assert sparse.freedom == pytest.approx(exact.freedom, rel=0.02)


@pytest.mark.slow
def test_networks_are_weighed_at_the_mean_of_their_weights():
    data = copies(2)
    model = mrgp.MRGPRN(latents=1, kernel_f=mrgp.RBF(), inducing_f=40, inducing_w=8)
    found = mrgp.composite_weights(model, data, **QUIET)
    assert found["source 0"] == pytest.approx(0.5, abs=1e-3)
    kept = mrgp.fit(model, data, weights=found, hyperparameters="keep", **QUIET)
    one = mrgp.fit(model, mrgp.Dataset([data["source 0"]]), **QUIET)
    at = mrgp.points(np.linspace(0.5, 11.5, 20)[:, None])
    ratio = mrgp.predict(kept, at).std / mrgp.predict(one, at).std
    assert np.all(np.abs(ratio - 1) < 0.1)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:composite_weights. the standard error")
def test_the_linear_model_of_two_tasks_names_processes_by_both():
    data = tasks_with_a_copy(2.0)
    model = mrgp.MRGPRN(latents=1, kernel_f=mrgp.RBF(), kernel_w="constant")
    found = mrgp.composite_weights(model, data, per_source=True, **QUIET)
    assert set(found) == {("site", "a"), "copy", ("site", "b")}
    assert found["copy"] < 0.75 < found["site", "b"]
    assert mrgp.fit(model, data, weights=found, **QUIET).status.ok


def tasks_with_a_copy(factor):
    x = np.linspace(0.0, 9.0, 40)[:, None]
    rng = np.random.default_rng(0)
    y = np.sin(x[:, 0]) + 0.2 * rng.standard_normal(40)
    z = factor * np.sin(x[:, 0]) + 0.2 * rng.standard_normal(40)
    return mrgp.Dataset(
        mrgp.Observations(mrgp.points(x), values, name=name, task=task)
        for name, task, values in (("site", "a", y), ("copy", "a", y), ("site", "b", z))
    )


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:composite_weights. the standard error")
def test_what_joins_tasks_is_fitted_to_all_of_them():
    model = mrgp.MRGPRN(latents=1, kernel_f=mrgp.RBF(), kernel_w="constant")
    data = tasks_with_a_copy(-2.0)
    kept = mrgp.fit(model, data, hyperparameters="keep", **QUIET)
    w = kept.parameters()
    assert w["W[b]"][0] / w["W[a]"][0] == pytest.approx(-2.0, rel=0.2)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:composite_weights. the standard error")
def test_networks_of_two_tasks_are_weighed():
    model = mrgp.MRGPRN(latents=1, kernel_f=mrgp.RBF(), inducing_f=15, inducing_w=5)
    found = mrgp.composite_weights(model, tasks_with_a_copy(2.0), per_source=True, **QUIET)
    assert found["copy"] < 0.75 < found["site", "b"]


def test_a_biased_copy_is_still_a_copy():
    data = copies(2)
    moved = data["source 1"].replace(y=3.0 * data["source 1"].y + 2.0)
    model = mrgp.MRGP(kernel=mrgp.RBF(), bias="affine")
    found = mrgp.composite_weights(model, mrgp.Dataset([data["source 0"], moved]), **QUIET)
    assert found["source 0"] == pytest.approx(0.5, abs=0.02)


@pytest.mark.thorough
def test_regions_taken_for_their_centres_overlap_as_they_did():
    data = datasets.dependent(0).data
    plain = mrgp.composite_weights(WAVE, data, **QUIET)
    centred = mrgp.composite_weights(mrgp.CenterPoint(WAVE), data, **QUIET)
    assert centred.clusters.count == plain.clusters.count
    assert centred["fine"] == pytest.approx(plain["fine"], abs=0.1)


def test_constant_values_say_nothing():
    x = mrgp.points(np.arange(20.0)[:, None])
    data = mrgp.Dataset(mrgp.Observations(x, np.full(20, 3.0), name=name) for name in "ab")
    with pytest.warns(UserWarning, match="residuals are all zero"):
        found = mrgp.composite_weights(WAVE, data, **QUIET)
    assert dict(found) == {"a": 1.0, "b": 1.0}


def test_kept_and_adjusted_fits_say_so_and_have_nothing_to_resume(tmp_path):
    data = copies(2)
    kept = mrgp.fit(WAVE, data, hyperparameters="keep", **QUIET)
    mrgp.save(kept, tmp_path / "fit")
    kept = mrgp.load(tmp_path / "fit")
    assert "parameters are those of each source on its own" in kept.summary()
    with pytest.raises(ValueError, match=r"made with hyperparameters=.keep.*nothing to go on with"):
        kept.resume(data)
    wider = mrgp.adjust_curvature(kept, data)
    assert "widened by adjust_curvature" in wider.summary()
    with pytest.raises(ValueError, match="is adjusted already"):
        mrgp.adjust_curvature(wider, data)
    with pytest.raises(ValueError, match="made by adjust_curvature"):
        wider.resume(data)


def test_the_bound_of_a_kept_fit_is_that_of_its_weighted_data():
    data = copies(2)
    weights = {"source 0": 0.5, "source 1": 0.5}
    kept = mrgp.fit(WAVE, data, weights=weights, hyperparameters="keep", **QUIET)
    refit = mrgp.fit(WAVE, data, weights=weights, **QUIET)
    assert kept.history[-1] <= refit.history[-1] + 1e-6
    assert kept.history[-1] == pytest.approx(refit.history[-1], abs=2.0)


class StopsAtOnce(mrgp.inference.Silent):
    def update(self, done, message):
        raise KeyboardInterrupt


def test_work_stopped_at_the_weights_ends_the_fit():
    with pytest.warns(UserWarning, match="ended early .interrupted"):
        fit = mrgp.fit(WAVE, copies(2), weights="auto", progress=StopsAtOnce())
    assert fit.status.code == "interrupted"
    assert fit.treatment == "keep"


def test_labels_may_be_renamed_and_reordered():
    data = datasets.dependent(0).data
    triples = np.minimum(np.arange(100) // 3, 33), np.arange(33)
    by_overlap = mrgp.composite_weights(WAVE, data, **QUIET)
    as_list = mrgp.composite_weights(WAVE, data, clusters=list(triples), **QUIET)
    words = {"coarse": [f"b{i}" for i in triples[1]], "fine": [f"b{i}" for i in triples[0]]}
    as_words = mrgp.composite_weights(WAVE, data, clusters=words, **QUIET)
    assert as_list.clusters.count == as_words.clusters.count == by_overlap.clusters.count
    assert as_list["fine"] == pytest.approx(by_overlap["fine"], rel=1e-9)
    assert as_words["fine"] == pytest.approx(by_overlap["fine"], rel=1e-9)


def test_missing_values_need_labels_but_do_not_count():
    data = datasets.dependent(0).data
    y = data["fine"].y.copy()
    y[[5, 6]] = np.nan
    gaps = mrgp.Dataset([data["fine"].replace(y=y), data["coarse"]])
    labels = [np.minimum(np.arange(100) // 3, 33), np.arange(33)]
    found = mrgp.composite_weights(WAVE, gaps, clusters=labels, **QUIET)
    assert found.clusters.sizes.sum() == 131
    assert found["fine"] == pytest.approx(
        mrgp.composite_weights(WAVE, gaps, **QUIET)["fine"], rel=1e-9
    )


def test_few_clusters_are_warned_of():
    data = datasets.dependent(0).data
    labels = [np.arange(100) // 25, np.arange(33) // 9]
    with pytest.warns(UserWarning, match="only 4 clusters with several sources, fewer than 10"):
        found = mrgp.composite_weights(WAVE, data, clusters=labels, **QUIET)
    assert "caution: only 4 clusters" in found.summary()
    for rule in ("lyddon", "ribatet"):
        with pytest.warns(UserWarning, match="only 4 clusters"):
            found = mrgp.composite_weights(WAVE, data, rule=rule, clusters=labels, **QUIET)
        assert all(np.isfinite(list(found.values())))


def test_clusters_that_explain_themselves_are_warned_of():
    data = datasets.dependent(0, noise=0.1).data
    labels = [np.minimum(np.arange(100) // 9, 10), np.minimum(np.arange(33) // 3, 10)]
    with pytest.warns(UserWarning, match="of itself, which biases the weight upward"):
        mrgp.composite_weights(WAVE, data, rule="ribatet", clusters=labels, **QUIET)


@pytest.mark.parametrize("grouping", ["observation", "source"])
def test_sources_kept_apart_show_no_dependence(grouping):
    with pytest.warns(UserWarning, match="no cluster holds several sources"):
        found = mrgp.composite_weights(WAVE, copies(2), clusters=grouping, **QUIET)
    assert found["source 0"] == pytest.approx(1.0)


def test_one_source_has_nothing_to_repeat():
    with pytest.warns(UserWarning, match="one source"):
        found = mrgp.composite_weights(WAVE, copies(1), **QUIET)
    assert dict(found) == {"source 0": pytest.approx(1.0)}


def test_the_account_tells_what_weights_rest_on():
    found = mrgp.composite_weights(WAVE, datasets.dependent(0).data, **QUIET)
    text = found.summary()
    assert text.startswith("Composite weights by the ratio rule, scores of the latent functions")
    assert "clusters: 34 of 1 to 4 observations, 33 with several sources" in text
    assert "effective degrees of freedom" in text
    assert 0 < found.standard_errors["fine"] < 0.2
    assert repr(found) == "CompositeWeights(fine: 0.523, coarse: 0.523; ratio, 34 clusters)"
    assert len(found) == 2
    assert found.information.shape == found.variability.shape


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rule": "best"}, "rule= is one of .*'ratio', 'ribatet', 'lyddon'.*; got 'best'"),
        ({"parameters": "all"}, "parameters= is one of .*; got 'all'"),
        ({"clusters": "pairs"}, "clusters= is one of .* or labels for every source; got 'pairs'"),
        ({"clusters": [[0, 1]]}, "labels for every source, 2 arrays .*; got a list of 1"),
        ({"clusters": {"typo": [0]}}, "'typo' is neither a source nor a"),
        ({"clusters": [[None] * 100, [0] * 33]}, "fine.*has missing labels"),
        ({"clusters": [[0, 1], [0, 1]]}, "fine.*labels of shape .2,. for 100 observations"),
        ({"clusters": {"fine": [0]}}, "no labels for 'coarse'"),
        ({"rule": "lyddon", "per_source": True}, "per_source=True goes with rule=.ratio"),
    ],
)
def test_wrong_arguments_are_told(arguments, text):
    with pytest.raises(ValueError, match=text):
        mrgp.composite_weights(WAVE, datasets.dependent(0).data, **arguments, **QUIET)


@pytest.mark.thorough
@pytest.mark.usefixtures("as_users_see_it")
def test_wrong_models_and_data_are_told():
    data = copies(2)
    with pytest.raises(ValueError, match="VBAgg has all weights one"):
        mrgp.composite_weights(mrgp.VBAgg(), data, **QUIET)
    with pytest.raises(TypeError, match="takes a Dataset; got list"):
        mrgp.composite_weights(WAVE, list(data), **QUIET)
    model = mrgp.MRGPRN(latents=1, kernel_f=mrgp.RBF(), inducing_f=10, inducing_w=4)
    with pytest.raises(ValueError, match="needs a model with a dense covariance"):
        mrgp.composite_weights(model, data, parameters="kernel", **QUIET)
    sparse = mrgp.MRGP(kernel=mrgp.RBF(), inducing=10, method="collapsed")
    with pytest.raises(ValueError, match="without inducing inputs"):
        mrgp.composite_weights(sparse, data, parameters="kernel", **QUIET)
    held = mrgp.MRGP(kernel=mrgp.RBF(lengthscale=mrgp.fixed(1.0), variance=mrgp.fixed(1.0)))
    with pytest.raises(ValueError, match="the kernel has no parameters to learn"):
        mrgp.composite_weights(held, data, parameters="kernel", **QUIET)
    several = mrgp.MRGPRN(latents=1, kernel_f=mrgp.RBF(), inducing_f=10, inducing_w=4, components=2)
    with pytest.raises(ValueError, match="take networks of one component; this one has 2"):
        mrgp.fit(several, data, hyperparameters="keep", **QUIET)
    with pytest.raises(TypeError, match="adjust_curvature takes a fit; got MRGP"):
        mrgp.adjust_curvature(WAVE, data)
    with pytest.raises(ValueError, match=r'weights= takes a mapping, or "auto"; got .yes.'):
        mrgp.fit(WAVE, data, weights="yes", **QUIET)
    with pytest.raises(ValueError, match="hyperparameters= is 'refit' or 'keep'; got 'hold'"):
        mrgp.fit(WAVE, data, hyperparameters="hold", **QUIET)
    with pytest.raises(ValueError, match="optimiser= has no use with"):
        mrgp.fit(WAVE, data, hyperparameters="keep", optimiser=mrgp.LBFGS(), **QUIET)


def test_each_source_alone_is_the_sum_of_their_evidences(small):
    _, model, records, *_ = small

    with jax.enable_x64(True):
        together = float(Separate(model).log_evidence(records))
        plain = unwrap(model)
        apart = 0.0
        for i, record in enumerate(records):
            kernels, read = linear_of(plain.alone(i), (record,))
            prior = np.asarray(mrgp.gp.prior_covariance(kernels, read, model.solver.rule))
            apart += slow.log_evidence(prior, np.asarray(read.noise), np.asarray(read.residual))
    assert together == pytest.approx(apart, rel=1e-9)


def test_curvature_moves_draws_to_the_covariance_that_scores_say(small):
    data, model, *_ = small
    found = smoothed_by(data, model).sandwich()
    matrix = curvature(found, cap=False)
    target = matrix @ matrix.T
    vectors = np.linalg.eigh(found.information)[1]
    count = min(found.clusters // 2, int(found.dimension))
    lead = vectors[:, ::-1][:, :count]
    mean_covariance = np.eye(len(target)) - found.information + found.variability
    np.testing.assert_allclose(lead.T @ target @ lead, lead.T @ mean_covariance @ lead, atol=1e-8)
    rest = vectors[:, ::-1][:, count:]
    np.testing.assert_allclose(rest.T @ target @ rest, np.eye(rest.shape[1]), atol=1e-8)
    capped = curvature(found)
    values = np.linalg.eigvalsh(capped @ capped.T)
    expected = np.maximum(np.linalg.eigvalsh(target), 1.0)
    np.testing.assert_allclose(values, expected, rtol=1e-8)


@pytest.mark.parametrize("inducing", rest_thorough([None, 40], 0))
def test_the_adjusted_posterior_is_that_of_moved_draws(inducing):
    data = copies(2)
    method = "auto" if inducing is None else "collapsed"
    model = mrgp.MRGP(kernel=mrgp.RBF(), inducing=inducing, method=method)
    fit = mrgp.fit(model, data, hyperparameters="keep", **QUIET)
    wider = mrgp.adjust_curvature(fit, data)
    at = mrgp.points(np.linspace(0.0, 12.0, 30)[:, None])
    before, after = (mrgp.predict(f, at) for f in (fit, wider))
    np.testing.assert_allclose(before.mean, after.mean)
    # Two copies: on average the variance of the data's part doubles.
    growth = np.mean(after.variance / before.variance)
    assert 1.3 < growth < 3.0
    smoothed = smoothed_by(data, fit.model)
    change = curvature(smoothed.sandwich())
    change = change @ change.T - np.eye(len(change))
    anchors = cross_with_anchors(fit, at)
    lifted = anchors @ smoothed.lift
    expected = before.variance + np.einsum("ni,ij,nj->n", lifted, change, lifted)
    np.testing.assert_allclose(after.variance, expected, rtol=1e-4, atol=1e-8)


def cross_with_anchors(fit, support):
    with jax.enable_x64(True):
        model = unwrap(fit.model)
        moved = support.shift(fit.scaling.centre)
        return np.asarray(fit.state.cross((model.kernel,), np.ones(1), moved, model.solver.rule))


@pytest.mark.usefixtures("as_users_see_it")
def test_what_cannot_be_adjusted_is_told():
    data = copies(2)
    weighted = mrgp.fit(WAVE, data, weights={"source 0": 0.5}, **QUIET)
    with pytest.raises(ValueError, match="takes fits without composite weights"):
        mrgp.adjust_curvature(weighted, data)
    plain = mrgp.fit(WAVE, data, **QUIET)
    with pytest.raises(ValueError, match="adjust_curvature goes on with the data of the fit"):
        mrgp.adjust_curvature(plain, copies(1))
