"""The small loop in GPyTorch: run by small_loop.py, in GPyTorch's own environment.

Takes a problem (npz), a number of threads and a number of steps. Prints the bound at the start,
and then, for every line it reads, takes that many steps of Adam and prints how long they took.
"""

import importlib.metadata
import sys
from collections.abc import Callable

import gpytorch
import numpy as np
import torch
from gpytorch.constraints import GreaterThan, Positive
from linear_operator.operators import DiagLinearOperator
from measure import answer

LOG = {"transform": torch.exp, "inv_transform": torch.log}


class AveragedSVGP(gpytorch.Module):
    """A whitened sparse variational GP for regions given by nodes.

    Kernel, q(u) and likelihood are GPyTorch's. Its variational strategy knows no averages, so the
    few lines of algebra are in torch, with less overhead than the strategy has. Positive
    parameters go by their logarithms, as in mrgp, so that steps of Adam are comparable.
    """

    def __init__(self, problem: dict[str, np.ndarray]):
        super().__init__()
        count, inputs = problem["locations"].shape
        rbf = gpytorch.kernels.RBFKernel(
            ard_num_dims=inputs, lengthscale_constraint=Positive(**LOG)
        )
        self.kernel = gpytorch.kernels.ScaleKernel(rbf, outputscale_constraint=Positive(**LOG))
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=GreaterThan(1e-9, **LOG)
        )
        self.q = gpytorch.variational.CholeskyVariationalDistribution(count)
        self.double()
        self.kernel.base_kernel.lengthscale = torch.tensor(problem["lengthscale"])
        self.kernel.outputscale = torch.tensor(problem["variance"])
        self.likelihood.noise = torch.tensor(problem["noise_variance"])
        self.x, self.y = torch.tensor(problem["x"]), torch.tensor(problem["y"])
        self.z, self.jitter = torch.tensor(problem["locations"]), float(problem["jitter"])
        self.eye = torch.eye(count, dtype=torch.float64)

    def forward(self) -> torch.Tensor:
        """Return the bound."""
        (n, s, d), m = self.x.shape, len(self.z)
        kzz = self.kernel(self.z).to_dense()
        prior = torch.linalg.cholesky(kzz + self.jitter * kzz.trace() / m * self.eye)
        cross = self.kernel(self.z, self.x.reshape(n * s, d)).to_dense().reshape(m, n, s).mean(2)
        own = self.kernel(self.x).to_dense().mean((1, 2))
        alpha = torch.linalg.solve_triangular(prior, cross, upper=False)
        mean, root = self.q.variational_mean, self.q.chol_variational_covar.tril()
        spread = own - (alpha**2).sum(0) + ((root.T @ alpha) ** 2).sum(0)
        marginals = gpytorch.distributions.MultivariateNormal(
            alpha.T @ mean, DiagLinearOperator(spread)
        )
        fitted = self.likelihood.expected_log_prob(self.y, marginals).sum()
        logarithm = torch.log(root.diagonal() ** 2).sum()
        return fitted - 0.5 * ((root**2).sum() + mean @ mean - m - logarithm)


def make_loop(model: AveragedSVGP, rate: float, steps: int) -> Callable[[], None]:
    """Return a loop of steps of Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)

    def loop() -> None:
        for _ in range(steps):
            optimiser.zero_grad()
            loss = -model()
            loss.backward()
            optimiser.step()

    return loop


def main(path: str, threads: str, steps: str) -> None:
    """Answer the questions of small_loop.py."""
    torch.set_num_threads(int(threads))
    with np.load(path) as file:
        problem = dict(file)
    model = AveragedSVGP(problem)
    loop = make_loop(model, float(problem["rate"]), int(steps))
    versions = {"gpytorch": importlib.metadata.version("gpytorch"), "torch": torch.__version__}
    answer(loop, lambda: model().item(), versions)


if __name__ == "__main__":
    main(*sys.argv[1:])
