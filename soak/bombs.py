"""Small files that would unfold into gigabytes, for each kind that a reader takes."""

import functools
import io
import json
import sqlite3

import h5py
import numpy as np
import pandas as pd
import pyarrow
import shapely
import zarr
from pyarrow import parquet

SIDE = 2000
"""Rows and columns of grids: 4e6 values."""


def values_of_netcdf_4(path, rng):
    """Claim values along two axes; nothing but the axes is stored."""
    n = SIDE + int(rng.integers(1000))
    with h5py.File(path, "w") as file:
        for name in ("lat", "lon"):
            file[name] = np.linspace(0, 1, n)
            file[name].make_scale(name)
        made = file.create_dataset("no2", (n, n), "f8", chunks=(100, 100), fillvalue=1.0)
        made.dims[0].attach_scale(file["lat"])
        made.dims[1].attach_scale(file["lon"])


def text_of_netcdf_4(path, rng):
    """Refer to one long text time and again."""
    with h5py.File(path, "w") as file:
        made = file.create_dataset("no2", (20_000,), f"S{10**5 + int(rng.integers(100))}", chunks=1)
        made[0] = b"x"


def values_of_netcdf_3(path, rng):
    """Let many variables lie at the same place of the file."""
    n, count = 10**6, 400 + int(rng.integers(100))

    def named(text):
        raw = text.encode()
        return len(raw).to_bytes(4, "big") + raw + bytes(-len(raw) % 4)

    def word(number):
        return int(number).to_bytes(4, "big")

    head = b"CDF\x01" + word(0) + word(10) + word(1) + named("x") + word(n) + word(0) + word(0)
    head += word(11) + word(count)
    each = [named(f"v{i:04d}") + word(1) + word(0) + word(0) + word(0) for i in range(count)]
    begin = word(len(head) + sum(len(one) + 12 for one in each))
    head += b"".join(one + word(1) + word(n) + begin for one in each)
    path.write_bytes(head + bytes(n))


def values_of_zarr(path, rng):
    n = 10**4 + int(rng.integers(1000))
    group = zarr.open_group(path, mode="w")
    named = {"dimension_names": ["lat", "lon"]}
    group.create_array("no2", shape=(n, n), chunks=(n, n), dtype="f8", **named)


def chunk_of_zarr(path, rng):
    """Store few values in a chunk that is far larger than they are."""
    n = 10**4 + int(rng.integers(1000))
    group = zarr.open_group(path, mode="w")
    made = group.create_array("no2", shape=(3,), chunks=(n,), dtype="f8")
    made[:] = 1.0
    file = path / "no2" / "zarr.json"
    file.write_text(file.read_text().replace(str(n), str(n * 10**5)))


def text_of_parquet(path, rng):
    """Repeat one long word of a dictionary."""
    words = pyarrow.array(["x" * (10**5 + int(rng.integers(1000)))])
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(20_000, "i4"), words)
    column = column if rng.integers(2) else column.cast(pyarrow.large_string())
    table = pyarrow.table({"no2": np.zeros(20_000), "lon": column})
    parquet.write_table(table, path, compression="zstd")


def values_of_parquet(path, rng):
    n = 4 * 10**6 + int(rng.integers(10**6))
    parquet.write_table(pyarrow.table({"no2": np.zeros(n), "lon": np.zeros(n)}), path)


def values_of_csv(path, rng):
    """Leave short rows to be filled up."""
    columns = 9000 + int(rng.integers(900))
    path.write_text(",".join(f"c{i}" for i in range(columns)) + "\n" + "1\n" * 40_000)


def rows_of_csv(path, rng):
    """End rows with the one sign that ends lines and is no line feed."""
    columns = 9000 + int(rng.integers(900))
    path.write_bytes(b",".join(b"c%d" % i for i in range(columns)) + b"\r" + b"1\r" * 40_000)


def name_of_csv(path, rng):
    """Call a column by a name that is longer than a reader of fields takes."""
    path.write_text("lon,lat,time,date,code,no2," + "n" * (131_073 + int(rng.integers(10**5))))
    with path.open("a") as file:
        file.write("\n0,51,2022-02-19,2022-02-19,KC1,3,4\n")


def number_of_toml(path, rng):
    """Write a whole number that takes the square of its digits."""
    path.write_text("key = " + "9" * (5000 + int(rng.integers(10**5))) + "\n")


def key_of_toml(path, rng):
    """Write a key of very many parts, or a table."""
    key = "a" + ".a" * (50_000 + int(rng.integers(10**4)))
    path.write_text(f"[{key}]\n" if rng.integers(2) else f"{key} = 1\n")


def word_of_toml(path, rng):
    """Begin a table in a text, and do not end it."""
    path.write_text('folder = """\n[' + " " * 10**6 + '\n"""\nkeys = 1\n')


def values_of_geojson(path, rng):
    """Give one shape very many properties, which all others then have."""
    point = {"type": "Point", "coordinates": [0, 0]}
    wide = {f"c{i}": 0 for i in range(5000 + int(rng.integers(900)))}
    features = [{"type": "Feature", "properties": {}, "geometry": point} for _ in range(5000)]
    features[0]["properties"] = wide
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def rows_without_end(path, rng):
    """Make a table of a GeoPackage a view that counts on and on."""
    import geopandas

    frame = pd.DataFrame({"no2": [1.0]})
    geopandas.GeoDataFrame(frame, geometry=[shapely.Point(0, 0)], crs=4326).to_file(path)
    with sqlite3.connect(path) as file:
        file.execute(f"ALTER TABLE {path.stem} RENAME TO kept")
        file.execute(
            f"CREATE VIEW {path.stem} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
            f" FROM n LIMIT {10**9 + int(rng.integers(10**9))}) SELECT i AS fid, kept.geom,"
            " kept.no2 FROM n, kept"
        )


@functools.cache
def packed_zeros():
    found = io.BytesIO()
    zeros = {f"0/{i}": np.zeros(10**7) for i in range(40)}
    np.savez_compressed(found, mark=np.array('"a fit"'), **zeros)
    return found.getvalue()


def arrays_of_journal(path, rng):
    """Pack zeros."""
    path.write_bytes(packed_zeros())


BOMBS = {
    "csv": (values_of_csv, rows_of_csv, name_of_csv),
    "aurn": (values_of_csv, rows_of_csv, name_of_csv),
    "configuration": (number_of_toml, key_of_toml, word_of_toml),
    "parquet": (text_of_parquet, values_of_parquet),
    "netcdf-3": (values_of_netcdf_3,),
    "netcdf-4": (values_of_netcdf_4, text_of_netcdf_4),
    "cams": (values_of_netcdf_4, text_of_netcdf_4),
    "zarr": (values_of_zarr, chunk_of_zarr),
    "geojson": (values_of_geojson,),
    "geopackage": (rows_without_end,),
    "journal": (arrays_of_journal,),
}
