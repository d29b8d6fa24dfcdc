"""Saved fits: what is loaded predicts the same, and a file can do no harm."""

import dataclasses
import json
import zipfile

import numpy as np
import pytest

import mrgp
from groups import rest_thorough
from mrgp.io import checkpoint

QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
X = np.linspace(0, 5, 12)[:, None]
KERNEL = (
    0.5 * mrgp.Matern32() * mrgp.Periodic(24, lengthscale=2.0) + mrgp.Linear() + mrgp.White() + 2.0
)


class Bump(mrgp.RBF):
    """A user's own kernel class."""


def data(wide=True):
    cells = mrgp.boxes(X, X + (0.5 if wide else 0.0), inputs="hour")
    return mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(X, inputs="hour"), np.sin(X[:, 0]), name="a", task="no2"),
            mrgp.Observations(cells, np.sin(X[:, 0]), name="b", task="no2", noise_variance=0.1),
        ]
    )


@pytest.mark.parametrize(
    ("model", "wide"),
    rest_thorough(
        [
            (mrgp.MRGP(KERNEL, bias="affine", mean="linear"), False),
            (
                mrgp.MRGP(
                    mrgp.separable(hour=mrgp.RBF()), method="collapsed", inducing=mrgp.Inducing(5)
                ),
                True,
            ),
            (
                mrgp.CenterPoint(mrgp.MRGP(mrgp.RBF(mrgp.positive(1.0, mrgp.Gamma(2.0, 1.0))))),
                True,
            ),
        ],
        0,
    ),
    ids=["exact", "collapsed", "center-point"],
)
def test_a_loaded_fit_predicts_identically(model, wide, tmp_path):
    fit = mrgp.fit(model, data(wide), optimiser=QUICK, weights={"b": 0.5})
    mrgp.save(fit, tmp_path / "fit")
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]
    again = mrgp.load(tmp_path / "fit")
    support = mrgp.intervals([0.3, 2.0], [0.9, 2.0], inputs="hour")
    a, b = (mrgp.predict(f, support, source="b", noise=True) for f in (fit, again))
    np.testing.assert_array_equal(a.mean, b.mean)
    np.testing.assert_array_equal(a.variance, b.variance)
    assert again.summary() == fit.summary()
    assert again.weights == fit.weights
    assert again.counts == fit.counts


def test_a_user_type_must_be_named_at_loading(tmp_path):
    fit = mrgp.fit(mrgp.MRGP(Bump()), data(), optimiser=QUICK)
    mrgp.save(fit, tmp_path / "fit")
    with pytest.raises(ValueError, match=r"class 'Bump', which mrgp does not know.*types=\[Bump\]"):
        mrgp.load(tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit", types=[Bump])
    here = mrgp.points([[1.0]])
    np.testing.assert_array_equal(mrgp.predict(again, here).mean, mrgp.predict(fit, here).mean)


def test_the_file_is_a_plain_zip_of_json_and_arrays(tmp_path):
    mrgp.save(mrgp.fit(mrgp.MRGP(), data(), optimiser=QUICK), tmp_path / "fit")
    with zipfile.ZipFile(tmp_path / "fit") as archive:
        names = archive.namelist()
        header = json.loads(archive.read("header.json"))
    assert header["schema"] == checkpoint.SCHEMA
    assert header["versions"]["mrgp"] == mrgp.__version__
    assert all(n == "header.json" or n.endswith(".npy") for n in names)


def test_arrays_of_objects_are_refused(tmp_path):
    path = tmp_path / "fit"
    mrgp.save(mrgp.fit(mrgp.MRGP(), data(), optimiser=QUICK), path)
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with (tmp_path / "bad.npy").open("wb") as file:
        np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    members["arrays/0.npy"] = (tmp_path / "bad.npy").read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    checkpoint.seal(path)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        mrgp.load(path)


@pytest.mark.usefixtures("as_users_see_it")
def test_other_files_are_refused_with_a_reason(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        mrgp.load(tmp_path / "missing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match=r"is not a fit saved by mrgp\.save"):
        mrgp.load(tmp_path / "text")
    (tmp_path / "mrgp.toml").write_text("[sources]")
    with pytest.raises(ValueError, match=r"It is a configuration: mrgp fit .*mrgp\.toml"):
        mrgp.load(tmp_path / "mrgp.toml")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("x", "y")
    with pytest.raises(ValueError, match=r"it has no header.json"):
        mrgp.load(tmp_path / "zip")
    with zipfile.ZipFile(tmp_path / "new", "w") as archive:
        archive.writestr("header.json", json.dumps({"schema": 99}))
    with pytest.raises(ValueError, match="newer than this version"):
        mrgp.load(tmp_path / "new")
    with pytest.raises(TypeError, match="save takes a fit"):
        mrgp.save(mrgp.MRGP(), tmp_path / "fit")


def test_damaged_files_are_called_damaged(tmp_path):
    path = tmp_path / "fit"
    mrgp.save(mrgp.fit(mrgp.MRGP(), data(), optimiser=QUICK), path)
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    header = json.loads(members["header.json"])

    def load_with(changed):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in (members | changed).items():
                if content is not None:
                    archive.writestr(name, content)
        checkpoint.seal(path)
        return mrgp.load(path)

    del header["fit"]["fields"]["status"]
    for changed in (
        {"header.json": b"{"},
        {"header.json": json.dumps({"schema": checkpoint.SCHEMA}).encode()},
        {"header.json": json.dumps(header).encode()},
        {"arrays/0.npy": None},
    ):
        with pytest.raises(ValueError, match="is damaged"):
            load_with(changed)
    empty = {"schema": checkpoint.SCHEMA, "fit": {"list": []}}
    with pytest.raises(ValueError, match="holds no fit"):
        load_with({"header.json": json.dumps(empty).encode()})


def test_save_needs_a_folder_and_load_names_of_their_own(tmp_path):
    fit = mrgp.fit(mrgp.MRGP(), data(), optimiser=QUICK)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        mrgp.save(fit, tmp_path / "missing" / "fit")
    mrgp.save(fit, tmp_path / "fit")
    clash = type("RBF", (mrgp.RBF,), {})
    with pytest.raises(ValueError, match="mrgp has a class RBF of its own"):
        mrgp.load(tmp_path / "fit", types=[clash])


def test_every_class_has_a_name_of_its_own():
    assert len(checkpoint.REGISTRY) == len(checkpoint._CLASSES)


def test_a_fit_of_an_older_version_names_the_version_that_reads_it(tmp_path):
    path = tmp_path / "old"
    header = {"schema": 5, "versions": {"mrgp": "0.1.0"}, "fit": {}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
    with pytest.raises(ValueError, match=r"Fit again, or load it with mrgp 0\.1\.0\."):
        mrgp.load(path)


def test_supports_of_an_exact_fit_are_written_once(tmp_path):
    x = np.linspace(0.0, 1.0, 40)[:, None]
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]))])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=mrgp.LBFGS(max_steps=2))
    mrgp.save(fit, tmp_path / "fit")
    with zipfile.ZipFile(tmp_path / "fit") as archive:
        sizes = [archive.getinfo(n).file_size for n in archive.namelist() if n.endswith("npy")]
    places = 40 * 8 + 128  # with the header of the format
    assert sum(size == places for size in sizes) <= 5  # places, weights, values, shapes, alpha
    again = mrgp.load(tmp_path / "fit")
    np.testing.assert_array_equal(again.records[0].support.x, again.state.anchors[0].x)


def test_no_bit_of_a_saved_fit_can_change_unseen(tmp_path):
    path = tmp_path / "fit"
    mrgp.save(mrgp.fit(mrgp.MRGP(), data(), optimiser=QUICK), path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        damaged, place = bytearray(whole), int(rng.integers(len(whole)))
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"^load: \S+fit .+\.$"):
            mrgp.load(path)
    for end in rng.integers(len(whole), size=50):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"load: \S+fit (is damaged|is not a fit)"):
            mrgp.load(path)
    path.write_bytes(whole + b"more")
    with pytest.raises(ValueError, match="is damaged"):
        mrgp.load(path)


def test_a_file_that_grows_beyond_measure_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGE", 1 << 20)
    path = tmp_path / "bomb"
    for name in ("arrays/0.npy", "header.json"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps({"schema": checkpoint.SCHEMA, "fit": 1}))
            if name == "header.json":
                archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
            with archive.open(name, "w") as member:
                for _ in range(4):
                    member.write(bytes(1 << 20))
            archive.close()
        checkpoint.seal(path)
        with pytest.raises(ValueError, match=r"bomb would take far more memory"):
            mrgp.load(path)


def test_arrays_of_one_value_are_saved_so_that_they_load(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGE", 1 << 12)
    x = np.linspace(0.0, 1.0, 3)[:, None]
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([mrgp.Observations(mrgp.points(x), x[:, 0])]))
    longer = dataclasses.replace(fit, history=np.zeros(100_000))
    mrgp.save(longer, tmp_path / "fit")
    assert len(mrgp.load(tmp_path / "fit").history) == 100_000
