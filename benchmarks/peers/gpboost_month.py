"""GPBoost on values of a network: reads arrays from one file, writes what it predicts to another.

A space-time Matern-3/2 by Vecchia's approximation, with or without a random effect for each site.
"""

import json
import sys
import time

import gpboost as gpb
import numpy as np


def main(source: str, target: str, neighbours: int, effects: bool) -> None:
    """Fit to convergence on one thread, predict with noise, and say how long it took."""
    given = np.load(source)
    x, y, at = given["x"], given["y"], given["at"]
    groups = {"group_data": given["site"]} if effects else {}
    asked = {"group_data_pred": given["site_at"]} if effects else {}
    start = time.process_time()
    model = gpb.GPModel(
        gp_coords=x,
        cov_function="matern_space_time",
        cov_fct_shape=1.5,
        gp_approx="vecchia",
        num_neighbors=neighbours,
        likelihood="gaussian",
        num_parallel_threads=1,
        seed=0,
        **groups,
    )
    model.fit(y=y, X=np.ones((len(y), 1)))
    fitted = time.process_time() - start
    found = model.predict(
        gp_coords_pred=at,
        X_pred=np.ones((len(at), 1)),
        predict_var=True,
        predict_response=True,
        **asked,
    )
    np.savez(target, mean=found["mu"], variance=found["var"])
    print(json.dumps({"cpu seconds": fitted, "version": gpb.__version__}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "effects")
