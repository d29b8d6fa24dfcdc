"""The network step in GPyTorch: run by network_step.py, in GPyTorch's own environment.

Takes a problem (npz), a number of threads and a number of repeats; prints value, gradient and
timings as JSON. Without repeats nothing is timed.
"""

import importlib.metadata
import json
import sys
import time
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.constraints import Positive
from measure import medians, peak_growth, repeat

Moments = tuple[torch.Tensor, torch.Tensor]


class Factor(gpytorch.Module):
    """A GP with GPyTorch's kernel and a whitened posterior; the algebra is in torch.

    Parameters have no transform: gradients are by the values themselves.
    """

    def __init__(self, problem: dict[str, np.ndarray], which: str, number: int):
        super().__init__()
        self.z, self.jitter = torch.tensor(problem[f"locations_{which}"]), float(problem["jitter"])
        plain = Positive(transform=None, inv_transform=None)
        rbf = gpytorch.kernels.RBFKernel(ard_num_dims=self.z.shape[1], lengthscale_constraint=plain)
        self.kernel = gpytorch.kernels.ScaleKernel(rbf, outputscale_constraint=plain).double()
        rbf.lengthscale = torch.tensor(problem[f"lengthscale_{which}"][number])
        self.kernel.outputscale = torch.tensor(problem[f"variance_{which}"][number])
        self.mean = torch.nn.Parameter(torch.tensor(problem[f"mean_{which}"][number]))
        self.root = torch.nn.Parameter(torch.tensor(problem[f"root_{which}"][number]))
        self.eye = torch.eye(len(self.z), dtype=torch.float64)

    def numbers(self) -> dict[str, torch.nn.Parameter]:
        """Return what the gradient is taken by."""
        return {
            "lengthscale": self.kernel.base_kernel.raw_lengthscale,
            "variance": self.kernel.raw_outputscale,
            "mean": self.mean,
            "root": self.root,
        }

    def forward(self, x: torch.Tensor) -> Moments:
        """Return mean and covariance at the nodes of each region."""
        (n, s, d), m = x.shape, len(self.z)
        root, kzz = self.root.tril(), self.kernel(self.z).to_dense()
        prior = torch.linalg.cholesky(kzz + self.jitter * kzz.trace() / m * self.eye)
        whiten = torch.linalg.solve_triangular(prior, self.eye, upper=False)
        alpha = self.kernel(x.reshape(n * s, d), self.z).to_dense() @ whiten.T
        spread = (alpha @ (root @ root.T - self.eye)).reshape(n, s, m)
        by_region = alpha.reshape(n, s, m)
        covariance = self.kernel(x).to_dense() + by_region @ spread.transpose(1, 2)
        return (alpha @ self.mean).reshape(n, s), covariance

    def divergence(self) -> torch.Tensor:
        """Return KL(q || prior)."""
        root = self.root.tril()
        logarithm = torch.log(root.diagonal() ** 2).sum()
        return 0.5 * ((root**2).sum() + self.mean @ self.mean - len(self.mean) - logarithm)


class NetworkBound(gpytorch.Module):
    """The bound of a network of GPs whose q is one Gaussian for each factor.

    Latent functions go through all regions at once, and weights through those of their task.
    """

    def __init__(self, problem: dict[str, np.ndarray]):
        super().__init__()
        factors = {
            which: [Factor(problem, which, i) for i in range(len(problem[f"mean_{which}"]))]
            for which in "fw"
        }
        self.f, self.w = (torch.nn.ModuleList(factors[which]) for which in "fw")
        self.noise_variance = torch.nn.Parameter(torch.tensor(problem["noise_variance"]))
        self.x, self.y, self.spread = (torch.tensor(problem[k]) for k in ("x", "y", "spread"))

    def moments(self) -> Moments:
        """Return mean and variance of every region, by task."""
        tasks = len(self.x)
        means: list[Any] = [0.0] * tasks
        variances: list[Any] = [0.0] * tasks
        for q, latent in enumerate(self.f):
            f = (a.chunk(tasks) for a in latent(self.x.flatten(0, 1)))
            for i, (mean, covariance) in enumerate(zip(*f, strict=True)):
                mean_w, covariance_w = self.w[i * len(self.f) + q](self.x[i])
                second_w = covariance_w + mean_w[:, :, None] * mean_w[:, None, :]
                pairs = covariance * second_w + mean[:, :, None] * mean[:, None, :] * covariance_w
                means[i] = means[i] + (mean * mean_w).mean(1)
                variances[i] = variances[i] + pairs.mean((1, 2))
        return torch.stack(means), torch.stack(variances)

    def forward(self) -> torch.Tensor:
        """Return the bound."""
        mean, variance = self.moments()
        spread, noise = self.spread[:, None], self.noise_variance[:, None]
        squares = (self.y - spread * mean) ** 2 + spread**2 * variance
        fitted = -0.5 * (torch.log(2 * np.pi * noise) + squares / noise).sum()
        return fitted - sum(part.divergence() for part in (*self.f, *self.w))

    def step(self) -> tuple[float, dict[str, Any]]:
        """Return value and gradient."""
        self.zero_grad()
        value = self()
        value.backward()
        slopes = {
            f"{name}_{which}": [part.numbers()[name].grad.squeeze(0).numpy() for part in factors]
            for which, factors in (("f", self.f), ("w", self.w))
            for name in self.f[0].numbers()
        }
        return value.item(), slopes | {"noise_variance": self.noise_variance.grad.numpy()}


def measure(bound: NetworkBound, repeats: int) -> dict[str, Any]:
    """Evaluate the step, and time it."""
    start = time.perf_counter()
    peak = peak_growth(bound.step)
    first = time.perf_counter() - start
    value, gradient = bound.step()
    result = {"value": value, "gradient": {k: np.stack(g).tolist() for k, g in gradient.items()}}
    if repeats:
        timed = medians(repeat(bound.step, repeats))
        once = {
            "compile seconds": max(0.0, first - timed["seconds"]),
            "compile and first step MB": peak,
        }
        result["row"] = timed | once
    return result


def main(path: str, threads: str, repeats: str) -> None:
    """Print the results of one way to run the step."""
    torch.set_num_threads(int(threads))
    with np.load(path) as file:
        bound = NetworkBound(dict(file))
    versions = {"gpytorch": importlib.metadata.version("gpytorch"), "torch": torch.__version__}
    print(json.dumps(measure(bound, int(repeats)) | {"versions": versions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
