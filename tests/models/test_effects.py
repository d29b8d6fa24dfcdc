"""Covariates and categories: how they come in, what is learned of them, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp
from reference import effects as reference

RNG = np.random.default_rng(3)
N = 36
FRAME = pd.DataFrame(
    {
        "east": RNG.uniform(0, 10, N),
        "north": RNG.uniform(0, 10, N),
        "type": np.array(["park", "road", "kerb"])[np.arange(N) % 3],
        "traffic": RNG.uniform(0, 5, N),
    }
)
LEVEL = {"park": 0.0, "road": 4.0, "kerb": 8.0}
FRAME["no2"] = (
    20 + FRAME["type"].map(LEVEL) + 1.5 * FRAME["traffic"] + np.sin(FRAME["east"])
) + 0.2 * RNG.standard_normal(N)
BOTH = ["type", "traffic"]
QUICK = mrgp.LBFGS(max_steps=5, starts=1, candidates=0)


def read(rows=FRAME, y="no2", covariates=BOTH, **more):
    return mrgp.from_frame(rows, ["east", "north"], y, covariates=covariates, **more)


@pytest.fixture(scope="module")
def fit():
    data = mrgp.Dataset([read(name="sites")])
    return mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK, progress=None)


def test_columns_are_inputs_after_the_others_with_a_code_book():
    support = read().support
    assert support.inputs == ("east", "north", "type", "traffic")
    assert support.categories == {2: ("kerb", "park", "road")}
    assert "; type kerb, park, road; traffic " in repr(support)
    np.testing.assert_array_equal(support.x[:3, 2], [1, 2, 0])


def test_kernel_terms_are_of_places_and_of_each_covariate(fit):
    names = set(fit.parameters())
    assert "kernel.Matern32(east, north).lengthscale" in names
    assert "kernel.Category(type).variance" in names
    assert fit.parameters()["kernel.Linear(traffic).variance"] == pytest.approx(
        FRAME["no2"].var(ddof=0) / FRAME["traffic"].var(ddof=0)
    )


def dense(fit):
    """Return the features, prior and the rest of the covariance as the fit has them."""
    found = fit.parameters()
    scale, length = (
        found[f"kernel.Matern32(east, north).{n}"] for n in ("variance", "lengthscale")
    )
    x = FRAME[["east", "north"]].to_numpy()
    r = np.sqrt(3) * np.linalg.norm(x[:, None] - x[None], axis=-1) / length
    rest = scale * (1 + r) * np.exp(-r) + found["noise_variance[sites]"] * np.eye(N)
    onehot = np.array([[t == level for level in ("kerb", "park", "road")] for t in FRAME["type"]])
    features = np.column_stack([onehot, FRAME["traffic"] - FRAME["traffic"].mean()])
    prior = np.array(
        [found["kernel.Category(type).variance"]] * 3 + [found["kernel.Linear(traffic).variance"]]
    )
    return features.astype(float), prior, rest, FRAME["no2"] - found["mean.constant"]


def test_effects_are_those_of_the_dense_linear_model(fit):
    mean, covariance = reference.weights(*dense(fit))
    about = np.eye(4)
    about[:3, :3] -= 1 / 3
    table = fit.effects()
    assert list(table.index) == ["type=kerb", "type=park", "type=road", "traffic"]
    assert list(table.columns) == ["mean", "sd", "lower_95", "upper_95"]
    np.testing.assert_allclose(table["mean"], about @ mean, rtol=1e-6, atol=1e-8)
    sd = np.sqrt(np.diag(about @ covariance @ about.T))
    np.testing.assert_allclose(table["sd"], sd, rtol=1e-5)
    np.testing.assert_allclose(table["upper_95"] - table["mean"], 1.96 * sd, rtol=1e-4)
    assert table.loc["type=kerb", "mean"] > table.loc["type=road", "mean"] > 0
    assert table.loc["traffic", "mean"] == pytest.approx(1.5, abs=0.2)


def test_inducing_inputs_give_the_same_effects(fit):
    data = mrgp.Dataset([read(name="sites")])
    sparse = mrgp.fit(
        mrgp.MRGP(method="collapsed", inducing=N), data, optimiser=QUICK, progress=None
    )
    np.testing.assert_allclose(sparse.effects(), fit.effects(), atol=0.02)


def test_a_saved_fit_keeps_the_code_book(fit, tmp_path):
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit")
    pd.testing.assert_frame_equal(again.effects(), fit.effects())
    kept = again.kept_data()
    assert kept["sites"].support.categories == {2: ("kerb", "park", "road")}
    some = read(FRAME[FRAME["type"] == "road"], None)
    np.testing.assert_array_equal(mrgp.predict(again, some).mean, mrgp.predict(fit, some).mean)


def test_predictions_know_categories_by_name_not_by_code(fit):
    rows = FRAME[FRAME["type"] == "road"][:2]
    alone = mrgp.predict(fit, read(rows, None)).mean
    among = mrgp.predict(fit, read(FRAME, None)).mean[rows.index]
    np.testing.assert_allclose(alone, among, rtol=1e-9)
    assert list(mrgp.predict(fit, read(rows, None)).to_frame()["type"]) == ["road", "road"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: read(FRAME, None, None), "The covariate 'type' is missing.*covariates=frame"),
        (lambda: read(FRAME, None, ["traffic"]), "The covariate 'type' is missing"),
        (
            lambda: read(FRAME.assign(type="lake"), None),
            "predict: the category 'lake' of 'type' was never seen in the fit, which has kerb",
        ),
        (lambda: read(FRAME.assign(type="Roads"), None), r"Did you mean 'road'\? Leave those rows"),
        (
            lambda: read(FRAME.assign(type=1.0), None),
            "predict: the column 'type' has numbers, but categories before",
        ),
    ],
)
def test_predictions_refuse_what_the_fit_does_not_know(fit, call, text):
    with pytest.raises(ValueError, match=text):
        mrgp.predict(fit, call())


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (
            FRAME.assign(type=FRAME["type"].where(FRAME.index > 2)),
            "source 'sites': the covariate 'type' is missing in 3 of 36 rows, first in row 0",
        ),
        (
            FRAME.assign(traffic=FRAME["traffic"].where(FRAME.index != 5)),
            "source 'sites': the covariate 'traffic' is missing in 1 of 36 rows, first in row 5",
        ),
        (FRAME.drop(columns="type"), "there is no column 'type'"),
    ],
)
def test_missing_covariates_are_counted_with_source_and_column(frame, text):
    with pytest.raises(ValueError, match=text):
        read(frame, name="sites")


def test_rows_must_match_the_regions():
    with pytest.raises(
        ValueError, match="covariates have 2 rows of 1 columns; there are 1 regions"
    ):
        mrgp.points([[0.0]], covariates={"type": ["a", "b"]})
    with pytest.raises(ValueError, match="there is already an input 'x1'"):
        mrgp.points([[0.0]], covariates={"x1": [1.0]})
    with pytest.raises(TypeError, match="the rows of a table belong to one source"):
        mrgp.Dataset([read()]).with_covariates(FRAME[["type"]])


def test_a_dataset_has_one_code_book():
    first, second = FRAME[FRAME["type"] != "park"], FRAME[FRAME["type"] == "park"]
    data = mrgp.Dataset([read(first, name="one"), read(second, name="two")])
    for support in data.supports:
        assert support.categories == {2: ("kerb", "park", "road")}
    np.testing.assert_array_equal(np.unique(data["two"].support.x[:, 2]), [1])
    np.testing.assert_array_equal(np.unique(data["one"].support.x[:, 2]), [0, 2])
    assert data.select("two").supports[0].categories == {2: ("kerb", "park", "road")}


def test_a_source_without_the_columns_reads_the_field_without_their_effects():
    cells = mrgp.Observations(
        mrgp.boxes([[0.0, 0.0]], [[10.0, 10.0]], inputs=("east", "north")), [25.0], name="cells"
    )
    with pytest.warns(
        UserWarning, match=r"'cells'.* has no 'type', 'traffic', and reads the field"
    ):
        data = mrgp.Dataset([read(name="sites"), cells])
    filled = data["cells"].support
    np.testing.assert_allclose(filled.lower[0, 2:], [-1.0, FRAME["traffic"].mean()])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mrgp.Dataset(list(data))


def test_numbers_in_one_source_and_categories_in_another_are_refused():
    with pytest.raises(ValueError, match=r"'two'.*'type' has numbers, but categories in .*'one'"):
        mrgp.Dataset([read(name="one"), read(FRAME.assign(type=1.0), name="two")])


def test_a_kernel_that_names_a_covariate_uses_it_and_no_effect_is_added():
    kernel = mrgp.Matern32() + mrgp.RBF(dims="traffic")
    model = mrgp.MRGP(kernel).build(mrgp.Dataset([read()]))
    assert [(type(k).__name__, k.columns) for k in model.kernel.kernels] == [
        ("Matern32", (0, 1)),
        ("RBF", (3,)),
        ("Category", (2,)),
    ]


def test_separable_kernels_leave_covariates_to_effects():
    kernel = mrgp.separable(east=mrgp.RBF(), rest=mrgp.Matern12())
    model = mrgp.MRGP(kernel).build(mrgp.Dataset([read()]))
    assert [k.columns for k in model.kernel.kernels[0].kernels] == [(0,), (1,)]


def test_distances_between_categories_are_refused():
    with pytest.raises(ValueError, match="RBF: 'type' has categories, between which there are no"):
        mrgp.MRGP(mrgp.RBF(dims="type")).build(mrgp.Dataset([read()]))


def test_a_network_refuses_categories_that_its_kernels_would_measure():
    with pytest.raises(ValueError, match="Matern32: 'type' has categories"):
        mrgp.MRGPRN(latents=1).build(mrgp.Dataset([read()]))


def test_a_region_averages_the_effects_of_its_nodes():
    """A cell of which three quarters are road has three quarters of its level."""
    use = xr.DataArray(
        np.array([["park", "road"], ["road", "road"]]),
        {"x": [0.5, 1.5], "y": [0.5, 1.5]},
        name="use",
    )
    cell = mrgp.boxes([[0.0, 0.0]], [[2.0, 2.0]], inputs=("x", "y")).with_covariates(use)
    assert cell.categories == {2: ("park", "road")}
    at = mrgp.points([[0.1, 0.1], [1.9, 1.9]], inputs=("x", "y")).with_covariates(use)
    from mrgp.gp import cross_covariance
    from mrgp.kernels import Category

    kernel = Category(2.0, origin=np.zeros(1), dims=(2,))
    found = np.asarray(cross_covariance(kernel, cell, at))
    # Five nodes across: two or three of them lie in the first half, by the side they fall on.
    np.testing.assert_allclose(found.sum(), 2.0, rtol=1e-6)
    share = found[0, 0] / 2.0
    own = np.asarray(cross_covariance(kernel, cell, cell))[0, 0]
    np.testing.assert_allclose(own, 2.0 * (share**2 + (1 - share) ** 2), rtol=1e-6)
    assert 0.1 < share < 0.4


def test_polygons_with_columns_are_products_with_them():
    from shapely import box

    shapes = mrgp.polygons([box(0, 0, 2, 2), box(2, 0, 4, 2)], spacing=1.0)
    made = shapes.with_covariates(pd.DataFrame({"use": ["town", "wood"]}))
    assert made.input_names == ("x1", "x2", "use")
    data = mrgp.Dataset([mrgp.Observations(made, [3.0, 5.0])])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK, progress=None)
    assert list(fit.effects().index) == ["use=town", "use=wood"]


def test_a_fit_without_covariates_has_no_effects():
    data = mrgp.Dataset([read(covariates=None)])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK, progress=None)
    with pytest.raises(ValueError, match="effects: the fit has none"):
        fit.effects()


def hourly(kinds, hours=8):
    """Return values of sites of some kinds, each hour."""
    rng = np.random.default_rng(7)
    places = rng.uniform(0, 9, (len(kinds), 2))
    rows = [(t, *p, kind) for p, kind in zip(places, kinds, strict=True) for t in range(hours)]
    frame = pd.DataFrame(rows, columns=["time", "east", "north", "kind"])
    frame["no2"] = rng.normal(size=len(frame))
    return mrgp.Dataset(
        [mrgp.from_frame(frame, ["time", "east", "north"], "no2", covariates=["kind"])]
    )


def products(data):
    kernel = mrgp.MRGP().build(data).solver.kernels[0]
    found = [k.kernels for k in kernel.kernels if isinstance(k, mrgp.kernels.Product)]
    return [first.only for first, *_ in found if isinstance(first, mrgp.Category)]


def test_categories_of_several_places_have_levels_in_time():
    # Codes go by the alphabet: kerb, park, road. One kerb is not told from its place.
    assert products(hourly(["park"] * 6 + ["road"] * 5 + ["kerb"])) == [(1, 2)]
    assert products(hourly(["park"] * 6 + ["road"] * 4)) == []


def test_levels_of_chosen_categories_alone():
    every, some = mrgp.Category(2.0), mrgp.Category(2.0, only=(1,))
    codes = [[-1.0], [0.0], [1.0]]
    np.testing.assert_array_equal(every(codes), np.diag([0.0, 2.0, 2.0]))
    np.testing.assert_array_equal(some(codes), np.diag([0.0, 0.0, 2.0]))


def test_levels_in_time_are_exact_along_time_and_saved(tmp_path):
    data = hourly(["park"] * 5 + ["road"] * 5)
    along = mrgp.fit(mrgp.MRGP(method="markov"), data, optimiser=QUICK, progress=None)
    dense = mrgp.fit(mrgp.MRGP(method="exact"), data, optimiser=QUICK, progress=None)
    assert along.history[0] == pytest.approx(dense.history[0], abs=1e-8)
    mrgp.save(along, tmp_path / "fit.mrgp")
    support = data.supports[0][:9]
    found, kept = (mrgp.predict(f, support) for f in (mrgp.load(tmp_path / "fit.mrgp"), along))
    np.testing.assert_allclose(found.mean, kept.mean)
    assert along.effects().index.tolist() == ["kind=park", "kind=road"]
