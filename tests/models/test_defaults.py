"""The kernel that `MRGP()` takes: places are places."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mrgp
from mrgp.kernels import Binding
from mrgp.models.defaults import MOST_NODES, default_kernel
from mrgp.supports import Geometry

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 10.0, (40, 3))
Y = np.sin(X[:, 0] / 2) + np.cos(X[:, 1] / 3) + 0.1 * X[:, 2]
QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)


def seen(support, y=None, name="sites"):
    return mrgp.Observations(support, np.zeros(len(support)) if y is None else y, name=name)


def chosen(*supports):
    data = mrgp.Dataset([seen(s, name=f"s{i}") for i, s in enumerate(supports)])
    return default_kernel(data, Geometry.of(data.supports))


def cells(count, names=("lon", "lat", "time")):
    lower = np.zeros((count, 3))
    return mrgp.boxes(lower, lower + [1.0, 1.0, 0.0], inputs=names)


def test_points_have_a_kernel_of_the_distance_times_one_of_the_rest():
    kernel = chosen(mrgp.points(X, inputs=("time", "lat", "lon")))
    assert [(type(k), k.dims, k.product) for k in kernel.kernels] == [
        (mrgp.Matern32, ("lat", "lon"), False),
        (mrgp.Matern32, ("time",), True),
    ]


def test_a_space_alone_has_one_kernel_of_the_distance():
    kernel = chosen(mrgp.points(X[:, :2], inputs=("x", "y")))
    assert isinstance(kernel, mrgp.Matern32)
    assert not kernel.product


@pytest.mark.parametrize("names", [("a", "b", "time"), ("lon", "b", "time")])
def test_without_a_space_each_input_has_its_own_lengthscale(names):
    kernel = chosen(mrgp.points(X, inputs=names))
    assert isinstance(kernel, mrgp.Matern32)
    assert kernel.product


def test_few_regions_are_averaged_by_quadrature_and_many_by_a_product():
    few, many = MOST_NODES // 25, MOST_NODES // 25 + 1
    assert isinstance(chosen(cells(few)), type(mrgp.RBF() * mrgp.RBF()))
    assert chosen(cells(many)).product
    # Points are as cheap in either form, however many there are.
    assert not chosen(mrgp.points(np.tile(X, (100, 1)), inputs=("x", "y", "t"))).kernels[0].product


@pytest.mark.parametrize("count", [4, 200])
def test_a_product_shares_the_lengthscale_of_a_space_too(count):
    data = mrgp.Dataset([seen(cells(count))])
    geometry = Geometry.of(data.supports)
    bound = default_kernel(data, geometry).bind(Binding(geometry))
    leaves = getattr(bound, "kernels", [bound])
    along = [group for k in leaves for group in k.along]
    assert sorted(along) == [(0, 1), (2,)]
    assert sum(k.lengthscale.value.size for k in leaves) == 2


def test_a_given_vector_of_lengthscales_stays_one_for_each_input():
    data = mrgp.Dataset([seen(mrgp.points(X, inputs=("lon", "lat", "time")), Y)])
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF([1.0, 2.0, 3.0])), data, optimiser=QUICK, progress=None)
    assert fit.parameters()["kernel.lengthscale"].shape == (3,)


def test_one_lengthscale_for_a_space_is_the_kernel_with_it_written_twice():
    data = mrgp.Dataset([seen(mrgp.points(X, inputs=("lon", "time", "lat")), Y)])
    geometry = Geometry.of(data.supports)
    for kernel in (mrgp.RBF(), mrgp.Matern52(), mrgp.Matern12(product=True)):
        model = mrgp.MRGP(kernel).build(data)
        (place, time) = np.asarray(model.kernel.lengthscale.value)
        written = type(kernel)(
            [place, time, place], variance=model.kernel.variance.value, dims=(0, 1, 2)
        )
        written = (
            written
            if not getattr(kernel, "product", False)
            else type(kernel)(
                [place, time, place], variance=model.kernel.variance.value, product=True
            )
        )
        shift = X - geometry.centre
        np.testing.assert_allclose(kernel_matrix(model.kernel, shift), written(shift), rtol=1e-12)


def kernel_matrix(kernel, x):
    import jax

    from mrgp.parameters import unwrap

    with jax.enable_x64(True):
        return np.asarray(unwrap(kernel).cross(x, x))


def test_a_turned_field_has_no_stripes():
    """Sites in a field that is alike in all directions, with more noise than sites tell apart."""
    data = mrgp.Dataset([seen(mrgp.points(X, inputs=("lon", "lat", "time")), Y)])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK, progress=None)
    assert fit.spaces == (("lon", "lat"),)
    assert fit.parameters()["kernel.Matern32(lon, lat).lengthscale"].shape == (1,)
    turned = mrgp.points(X[:, [1, 0, 2]], inputs=("lat", "lon", "time"))
    other = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen(turned, Y)]), optimiser=QUICK, progress=None)
    np.testing.assert_allclose(fit.history[-1], other.history[-1], rtol=1e-8)


def test_the_summary_names_what_each_lengthscale_is_along():
    data = mrgp.Dataset([seen(mrgp.points(X, inputs=("lon", "lat", "time")), Y)])
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF()), data, optimiser=QUICK, progress=None)
    (line,) = [line for line in fit.summary().splitlines() if "lengthscale" in line]
    assert "(lon, lat), " in line
    assert line.endswith("(time)")


def test_a_saved_fit_keeps_its_spaces(tmp_path):
    data = mrgp.Dataset([seen(mrgp.points(X, inputs=tuple("abc"), space=("a", "c")), Y)])
    fit = mrgp.fit(mrgp.MRGP(mrgp.RBF()), data, optimiser=QUICK, progress=None)
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit")
    assert again.spaces == (("a", "c"),)
    assert again.kept_data().spaces == (("a", "c"),)
    assert again.summary() == fit.summary()
    at = mrgp.points(X[:3])
    np.testing.assert_array_equal(mrgp.predict(again, at).mean, mrgp.predict(fit, at).mean)


def test_frames_and_grids_take_a_space():
    frame = pd.DataFrame(X, columns=["a", "b", "t"]).assign(v=Y)
    assert mrgp.from_frame(frame, ["a", "b", "t"], "v", space=("a", "b")).support.spaces == (
        (0, 1),
    )
    grid = xr.DataArray(np.ones((2, 2)), {"r": [0.0, 1.0], "c": [0.0, 1.0]}, name="v")
    assert mrgp.from_grid(grid, space=("r", "c")).support.spaces == ((0, 1),)


def ceiling(kernel, *supports):
    data = mrgp.Dataset([seen(s, RNG.normal(size=len(s)), f"s{i}") for i, s in enumerate(supports)])
    model = mrgp.MRGP(kernel).build(data)
    spread = float(mrgp.data.Frame.of(data).scaling.scale[0])
    parts = getattr(model.kernel, "kernels", [model.kernel])
    return [float(part.variance.transform.ceiling) / spread**2 for part in parts]


def test_variances_may_grow_as_far_as_averages_allow():
    """Means over wide regions have less variance than the field, which may have the more."""
    points = mrgp.points(np.linspace(0.0, 100.0, 30)[:, None])
    start = np.arange(0.0, 100.0, 20.0)
    wide, narrow = mrgp.intervals(start, start + 20.0), mrgp.intervals(start, start + 0.01)
    kernel = mrgp.Matern32()
    np.testing.assert_allclose(ceiling(kernel, points), 100.0)
    np.testing.assert_allclose(ceiling(kernel, narrow), 100.0, rtol=0.01)
    assert ceiling(kernel, wide)[0] > 115.0
    np.testing.assert_allclose(ceiling(kernel, wide, points), 100.0)


def test_a_term_of_a_sum_may_have_all_the_variance():
    points = mrgp.points(np.linspace(0.0, 100.0, 30)[:, None])
    np.testing.assert_allclose(ceiling(mrgp.RBF() + mrgp.Matern12(), points), 100.0)
