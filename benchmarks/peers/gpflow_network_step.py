"""The network step in GPflow: run by network_step.py, in GPflow's own environment.

Takes a problem (npz), a way to run it and a number of repeats; prints value, gradient and timings
as JSON. Without repeats nothing is timed.
"""

import importlib.metadata
import json
import sys
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.kullback_leiblers import gauss_kl
from gpflow_core_step import WAYS, measure

NUMBERS = ("lengthscale", "variance", "mean", "root")
Moments = tuple[tf.Tensor, tf.Tensor]


class Factors(tf.Module):
    """GPs with a kernel and a whitened posterior each, and inducing inputs in common.

    Parameters have no transform: gradients are by the values themselves.
    """

    def __init__(self, problem: dict[str, np.ndarray], which: str):
        super().__init__()
        self.numbers = {name: tf.Variable(problem[f"{name}_{which}"]) for name in NUMBERS}
        self.kernels = [gpflow.kernels.SquaredExponential() for _ in problem[f"mean_{which}"]]
        self.locations = tf.constant(problem[f"locations_{which}"])
        self.jitter = float(problem["jitter"])

    def at_nodes(self, number: int, x: tf.Tensor) -> Moments:
        """Return mean and covariance of one of the GPs at the nodes of each region.

        The algebra is written out, since GPflow's conditional solves a triangular system for each
        region. The inverse factor makes that one matrix product for all regions; and S - I in one,
        instead of S and I apart, saves one of two S x S products for each region.
        """
        (n, s, d), m = x.shape, len(self.locations)
        lengthscale, variance, mean, root = (self.numbers[name][number] for name in NUMBERS)
        kernel, eye = self.kernels[number], tf.eye(m, dtype=tf.float64)
        kernel.lengthscales, kernel.variance = lengthscale, variance
        kzz = kernel.K(self.locations)
        prior = tf.linalg.cholesky(kzz + self.jitter * tf.linalg.trace(kzz) / m * eye)
        whiten, root = tf.linalg.triangular_solve(prior, eye), tf.linalg.band_part(root, -1, 0)
        cross = kernel.K(tf.reshape(x, (n * s, d)), self.locations)
        alpha = tf.matmul(cross, whiten, transpose_b=True)
        spread = tf.matmul(alpha, tf.matmul(root, root, transpose_b=True) - eye)
        by_region = tf.reshape(alpha, (n, s, m)), tf.reshape(spread, (n, s, m))
        covariance = kernel.K(x) + tf.matmul(*by_region, transpose_b=True)
        return tf.reshape(tf.linalg.matvec(alpha, mean), (n, s)), covariance

    def divergence(self) -> tf.Tensor:
        """Return KL(q || prior) of all GPs together."""
        return gauss_kl(tf.transpose(self.numbers["mean"]), self.numbers["root"])


class NetworkBound(tf.Module):
    """The bound of a network of GPs whose q is one Gaussian for each factor.

    Latent functions go through all regions at once, and weights through those of their task.
    """

    def __init__(self, problem: dict[str, np.ndarray]):
        super().__init__()
        self.f, self.w = Factors(problem, "f"), Factors(problem, "w")
        self.noise_variance = tf.Variable(problem["noise_variance"])
        self.x, self.y = tf.constant(problem["x"]), tf.constant(problem["y"])
        self.spread = tf.constant(problem["spread"])

    def variables_by_name(self) -> dict[str, tf.Variable]:
        """Return what the gradient is taken by."""
        pairs = (("f", self.f), ("w", self.w))
        factors = {f"{name}_{k}": v for k, part in pairs for name, v in part.numbers.items()}
        return factors | {"noise_variance": self.noise_variance}

    def moments(self) -> Moments:
        """Return mean and variance of every region, by task."""
        p, n, s, d = self.x.shape
        latents = len(self.f.kernels)
        means: list[Any] = [0.0] * p
        variances: list[Any] = [0.0] * p
        for q in range(latents):
            f = self.f.at_nodes(q, tf.reshape(self.x, (p * n, s, d)))
            for i, (mean, covariance) in enumerate(zip(*(tf.split(a, p) for a in f), strict=True)):
                mean_w, covariance_w = self.w.at_nodes(i * latents + q, self.x[i])
                second_w = covariance_w + mean_w[:, :, None] * mean_w[:, None, :]
                pairs = covariance * second_w + mean[:, :, None] * mean[:, None, :] * covariance_w
                means[i] += tf.reduce_mean(mean * mean_w, 1)
                variances[i] += tf.reduce_mean(pairs, (1, 2))
        return tf.stack(means), tf.stack(variances)

    def value(self) -> tf.Tensor:
        """Return the bound."""
        mean, variance = self.moments()
        spread, noise = self.spread[:, None], self.noise_variance[:, None]
        squares = (self.y - spread * mean) ** 2 + spread**2 * variance
        fitted = -0.5 * tf.reduce_sum(tf.math.log(2 * np.pi * noise) + squares / noise)
        return fitted - self.f.divergence() - self.w.divergence()


def main(path: str, way: str, repeats: str) -> None:
    """Print the results of one way to run the step."""
    with np.load(path) as file:
        bound: Any = NetworkBound(dict(file))
    versions = {name: importlib.metadata.version(name) for name in ("gpflow", "tensorflow")}
    print(json.dumps(measure(bound, WAYS[way], int(repeats)) | {"versions": versions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
