"""The core step in GPflow: run by core_step.py, in GPflow's own environment.

Takes a problem (npz), a way to run it and a number of repeats; prints value, gradient and timings
as JSON. Without repeats nothing is timed.
"""

import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from measure import medians, peak_growth, repeat

JITTER = 1e-10
WAYS = {"xla": True, "graph": False}


class CollapsedBound(tf.Module):
    """Titsias' bound for regions given by nodes, the kernel averaged over the nodes first.

    Parameters have no transform: gradients are by the values themselves.
    """

    def __init__(self, problem: dict[str, np.ndarray]):
        super().__init__()
        self.kernel = gpflow.kernels.SquaredExponential()
        self.kernel.lengthscales = gpflow.Parameter(problem["lengthscale"])
        self.kernel.variance = gpflow.Parameter(problem["variance"])
        self.noise_variance = gpflow.Parameter(problem["noise_variance"])
        self.locations = gpflow.Parameter(problem["locations"])
        self.x, self.y = tf.constant(problem["x"]), tf.constant(problem["y"])

    def variables_by_name(self) -> dict[str, tf.Variable]:
        """Return what the gradient is taken by."""
        named = {
            "lengthscale": self.kernel.lengthscales,
            "variance": self.kernel.variance,
            "noise_variance": self.noise_variance,
            "locations": self.locations,
        }
        return {name: p.unconstrained_variable for name, p in named.items()}

    def covariances(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return Kzz, the averaged Kxz, and the variances of the averages."""
        n, s, d = self.x.shape
        z = tf.convert_to_tensor(self.locations)
        cross = tf.reshape(self.kernel.K(tf.reshape(self.x, (n * s, d)), z), (n, s, len(z)))
        own = tf.reduce_mean(self.kernel.K(self.x), (1, 2))
        return self.kernel.K(z), tf.reduce_mean(cross, 1), own

    def value(self) -> tf.Tensor:
        """Return the bound."""
        kzz, kxz, own = self.covariances()
        n, m = kxz.shape
        eye = tf.eye(m, dtype=tf.float64)
        noise = tf.convert_to_tensor(self.noise_variance)
        prior = tf.linalg.cholesky(kzz + JITTER * tf.linalg.trace(kzz) / m * eye)
        basis = tf.linalg.triangular_solve(prior, tf.transpose(kxz)) / tf.sqrt(noise)
        factor = tf.linalg.cholesky(eye + tf.matmul(basis, basis, transpose_b=True))
        residual = self.y / tf.sqrt(noise)
        projected = tf.linalg.triangular_solve(factor, tf.linalg.matvec(basis, residual)[:, None])
        quadratic = tf.reduce_sum(residual**2) - tf.reduce_sum(projected**2)
        determinant = 2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
        unexplained = tf.reduce_sum(own) / noise - tf.reduce_sum(basis**2)
        return -0.5 * (quadratic + determinant + n * tf.math.log(2 * np.pi * noise) + unexplained)


def make_step(bound: CollapsedBound, xla: bool) -> Callable[[], tuple[np.ndarray, dict]]:
    """Compile value and gradient."""
    variables = bound.variables_by_name()

    @tf.function(jit_compile=xla)
    def compiled() -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        with tf.GradientTape() as tape:
            value = bound.value()
        return value, tape.gradient(value, variables)

    def step() -> tuple[np.ndarray, dict[str, np.ndarray]]:
        value, gradient = compiled()
        return value.numpy(), {name: g.numpy() for name, g in gradient.items()}

    return step


def measure(bound: CollapsedBound, xla: bool, repeats: int) -> dict[str, Any]:
    """Compile the step, evaluate it, and time it."""
    step = make_step(bound, xla)
    start = time.perf_counter()
    peak = peak_growth(step)
    first = time.perf_counter() - start
    value, gradient = step()
    result = {"value": float(value), "gradient": {k: g.tolist() for k, g in gradient.items()}}
    if repeats:
        timed = medians(repeat(step, repeats))
        once = {"compile seconds": first - timed["seconds"], "compile and first step MB": peak}
        result["row"] = timed | once
    return result


def main(path: str, way: str, repeats: str) -> None:
    """Print the results of one way to run the step."""
    with np.load(path) as file:
        bound = CollapsedBound(dict(file))
    versions = {name: importlib.metadata.version(name) for name in ("gpflow", "tensorflow")}
    print(json.dumps(measure(bound, WAYS[way], int(repeats)) | {"versions": versions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
