"""Make the file of coasts, borders and cities: `python tests/report/outlines.py WORLD US CITIES`.

WORLD is `countries-10m.json` of the npm package world-atlas 2.0.2, US is `states-10m.json` of
us-atlas 3.0.1, and CITIES is `naturalearth_cities.shp` of the wheel of geopandas 0.14.4.
"""

import io
import json
import lzma
import sys
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[2] / "src" / "mrgp" / "report" / "outlines.xz"
FINE = 500
"""Parts of a degree."""
COAST, BORDER, STATE = range(3)


def arcs(path, name):
    """Return every arc of a topology, and how many areas it bounds."""
    topology = json.loads(Path(path).read_text())
    scale, origin = topology["transform"]["scale"], topology["transform"]["translate"]
    owners = {}
    for number, area in enumerate(topology["objects"][name]["geometries"]):
        for arc in flat(area.get("arcs", [])):
            owners.setdefault(max(arc, ~arc), set()).add(number)
    for number, steps in enumerate(topology["arcs"]):
        yield np.cumsum(steps, 0) * scale + origin, len(owners.get(number, ()))


def flat(nested):
    """Return the numbers of nested lists."""
    for part in nested:
        yield from flat(part) if isinstance(part, list) else [part]


def kept(world, states):
    """Return the lines to draw, in parts of a degree, and their kinds."""
    lines = [(xy, COAST if owners == 1 else BORDER) for xy, owners in world if owners]
    lines += [(xy, STATE) for xy, owners in states if owners == 2]
    for xy, kind in lines:
        whole = np.rint(FINE * xy).astype(np.int64)
        moved = np.r_[True, np.any(np.diff(whole, axis=0) != 0, axis=1)]
        yield whole[moved], kind


def main(world, states, cities):
    """Write the file."""
    import geopandas

    lines, kinds = zip(*kept(arcs(world, "countries"), arcs(states, "states")), strict=True)
    steps = np.concatenate([np.diff(line, axis=0) for line in lines])
    towns = geopandas.read_file(cities)
    made = io.BytesIO()
    np.savez(
        made,
        kind=np.array(kinds, "u1"),
        count=np.array([len(line) for line in lines], "<i4"),
        first=np.array([line[0] for line in lines], "<i4"),
        east=steps[:, 0].astype("<i4"),
        north=steps[:, 1].astype("<i4"),
        city=np.array([str(name) for name in towns["name"]]),
        place=np.column_stack([towns.geometry.x, towns.geometry.y]).round(3),
    )
    FILE.write_bytes(lzma.compress(made.getvalue(), preset=9))


if __name__ == "__main__":
    main(*sys.argv[1:])
