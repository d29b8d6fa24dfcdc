"""The small loop in GPflow: run by small_loop.py, in GPflow's own environment.

Takes a problem (npz), a way to run it and a number of steps. Prints the bound at the start, and
then, for every line it reads, takes that many steps of Adam and prints how long they took.
"""

import importlib.metadata
import sys
from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.conditionals.util import base_conditional
from measure import answer

WAYS = {"xla": True, "graph": False}


class AveragedSVGP(gpflow.Module):
    """A whitened sparse variational GP for regions given by nodes.

    Averages of the kernel are made here; all else is what GPflow offers. Positive parameters go
    by their logarithms, as in mrgp, so that steps of Adam are comparable.
    """

    def __init__(self, problem: dict[str, np.ndarray]):
        super().__init__()
        self.kernel = gpflow.kernels.SquaredExponential()
        self.kernel.lengthscales = _positive(problem["lengthscale"])
        self.kernel.variance = _positive(problem["variance"])
        self.likelihood = gpflow.likelihoods.Gaussian()
        self.likelihood.variance = _positive(problem["noise_variance"])
        m = len(problem["locations"])
        self.q_mu = gpflow.Parameter(np.zeros((m, 1)))
        self.q_sqrt = gpflow.Parameter(np.eye(m)[None], transform=gpflow.utilities.triangular())
        self.x, self.y = tf.constant(problem["x"]), tf.constant(problem["y"][:, None])
        self.z, self.jitter = tf.constant(problem["locations"]), float(problem["jitter"])

    def bound(self) -> tf.Tensor:
        """Return the bound."""
        (n, s, d), m = self.x.shape, len(self.z)
        kzz = self.kernel.K(self.z)
        kzz += self.jitter * tf.linalg.trace(kzz) / m * tf.eye(m, dtype=tf.float64)
        cross = tf.reshape(self.kernel.K(self.z, tf.reshape(self.x, (n * s, d))), (m, n, s))
        own = tf.reduce_mean(self.kernel.K(self.x), (1, 2))
        mean, variance = base_conditional(
            tf.reduce_mean(cross, 2), kzz, own, self.q_mu, q_sqrt=self.q_sqrt, white=True
        )
        # A Gaussian likelihood looks at no inputs; their number is all it wants.
        fitted = self.likelihood.variational_expectations(self.x[:, 0], mean, variance, self.y)
        return tf.reduce_sum(fitted) - gpflow.kullback_leiblers.gauss_kl(self.q_mu, self.q_sqrt)


def _positive(value: np.ndarray) -> gpflow.Parameter:
    return gpflow.Parameter(value, transform=tfp.bijectors.Exp())


def make_loop(model: AveragedSVGP, xla: bool, rate: float, steps: int) -> Callable[[], None]:
    """Compile a step of Adam, and return a loop of some."""
    optimiser, variables = tf.optimizers.Adam(rate), model.trainable_variables
    optimiser.build(variables)

    @tf.function(jit_compile=xla)
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = -model.bound()
        optimiser.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    def loop() -> None:
        for _ in range(steps):
            loss = step()
        loss.numpy()

    return loop


def main(path: str, way: str, steps: str) -> None:
    """Answer the questions of small_loop.py."""
    with np.load(path) as file:
        problem = dict(file)
    model = AveragedSVGP(problem)
    loop = make_loop(model, WAYS[way], float(problem["rate"]), int(steps))
    versions = {name: importlib.metadata.version(name) for name in ("gpflow", "tensorflow")}
    answer(loop, lambda: float(model.bound()), versions)


if __name__ == "__main__":
    main(*sys.argv[1:])
