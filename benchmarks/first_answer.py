"""How long a first answer takes: a fit and a prediction in a new process, and at another size.

Every model is tried in a process with an empty cache of compiled programs (cold), in the next one
(warm), and, in the first, with ten values fewer. Prints its measurements as JSON; `run.py` runs it
with the right environment.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

POINTS, SIDE = 150, 10
FEWER = 10
MODELS = ("MRGP", "MRGPRN", "MRDGP", "auto")
QUICK = ("MRGP",)
MOST = {
    ("MRGP", "cold"): 7.5,
    ("MRGP", "warm"): 5.0,
    ("MRGP", "other size"): 2.5,
    ("MRDGP", "cold"): 12.0,
    ("MRDGP", "other size"): 4.0,
}
AIMS = {
    ("MRGP", "cold"): 6.0,
    ("MRGP", "warm"): 3.0,
    ("MRGP", "other size"): 1.5,
    ("MRGPRN", "cold"): 18.0,
    ("MRGPRN", "other size"): 6.0,
    ("auto", "cold"): 30.0,
    ("auto", "other size"): 12.0,
}


def answers(name: str) -> list[float]:
    """Fit and predict twice, the second time with fewer values; return CPU seconds, import in."""
    seconds = [0.0]
    import numpy as np

    import mrgp

    mrgp.compilation_cache()
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, SIDE, (POINTS, 2))
    low = np.stack(np.meshgrid(*[np.arange(float(SIDE))] * 2, indexing="ij"), -1).reshape(-1, 2)

    def field(at: np.ndarray) -> np.ndarray:
        return np.sin(at[:, 0]) + 0.5 * np.cos(0.7 * at[:, 1])

    y = 20.0 + 5.0 * field(x) + 0.5 * rng.standard_normal(POINTS)
    z = 22.0 + 4.0 * field(low + 0.5) + 0.3 * rng.standard_normal(len(low))
    recipes = {
        "MRGP": mrgp.MRGP(bias="affine"),
        "MRGPRN": mrgp.MRGPRN(),
        "MRDGP": mrgp.MRDGP(target="sensors"),
        "auto": "auto",
    }
    for rows in (POINTS, POINTS - FEWER):
        sensors = mrgp.Observations(mrgp.points(x[:rows]), y[:rows], name="sensors")
        cells = mrgp.Observations(mrgp.boxes(low, low + 1.0), z, name="cells")
        fit = mrgp.fit(recipes[name], mrgp.Dataset([sensors, cells]), progress=None)
        mrgp.predict(fit, mrgp.points(x[:50]))
        seconds.append(time.process_time())
    return [later - before for before, later in itertools.pairwise(seconds)]


def in_a_process(name: str, folder: str) -> list[float]:
    """Find the answers in a new process that keeps its programs in a folder."""
    left = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, __file__, "--model", name]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=left | {"MRGP_CACHE": folder}
    )
    return json.loads(done.stdout)


def measure(models: tuple[str, ...]) -> dict[str, object]:
    """Try every model cold, and then warm."""
    rows = {}
    for name in models:
        with tempfile.TemporaryDirectory() as folder:
            cold, other = in_a_process(name, folder)
            warm, _ = in_a_process(name, folder)
        rows[name] = {"cold": cold, "warm": warm, "other size": other}

    def held(limits: dict[tuple[str, str], float]) -> list[dict[str, object]]:
        return [
            {"what": f"{name}: {when}", "unit": "cpu s", "measured": rows[name][when], "most": most}
            for (name, when), most in limits.items()
            if models == MODELS
        ]

    sizes = {"points": POINTS, "boxes": SIDE**2, "fewer": FEWER}
    return {"sizes": sizes, "rows": rows, "requirements": held(MOST), "aims": held(AIMS)}


def main(arguments: list[str]) -> None:
    """Measure, or, as a new process, answer."""
    if arguments[:1] == ["--model"]:
        result: object = answers(arguments[1])
    else:
        result = measure(QUICK if "--quick" in arguments else MODELS)
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
