"""Parts of a model as an experiment's file writes them: kernels, inducing inputs, optimisers."""

import functools
import operator
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from mrgp import inference, kernels
from mrgp.gp import Inducing
from mrgp.parameters import Parameter

KernelName = Literal[
    "RBF",
    "Matern12",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
    "Polynomial",
    "ArcCosine",
    "SpectralMixture",
    "Periodic",
    "Linear",
    "Constant",
]


class KernelSettings(BaseModel):
    """A kernel by name, with settings: `{ name = "Matern32", lengthscale = 100.0 }`."""

    model_config = ConfigDict(extra="allow")
    name: KernelName


def _form(given: Any) -> str:
    forms = {"name": KernelSettings, "sum": KernelSum, "product": KernelProduct}
    for form, model in forms.items():
        if isinstance(given, model) or (isinstance(given, dict) and form in given):
            return "settings" if form == "name" else form
    return "inputs" if isinstance(given, dict) else "name"


Named = Annotated[KernelName, Tag("name")] | Annotated[KernelSettings, Tag("settings")]
OneKernel = Annotated[Named, Discriminator(_form)]
Products = Annotated[dict[str, OneKernel], Tag("inputs")]


class KernelProduct(BaseModel):
    """A product of kernels that say themselves which inputs they see: `{ product = [...] }`."""

    model_config = ConfigDict(extra="forbid")
    product: list[OneKernel] = Field(min_length=1)


Terms = Named | Products | Annotated[KernelProduct, Tag("product")]


class KernelSum(BaseModel):
    """A sum of kernels: `{ sum = ["RBF", { name = "Matern12", dims = ["lon", "lat"] }] }`."""

    model_config = ConfigDict(extra="forbid")
    sum: list[Annotated[Terms, Discriminator(_form)]] = Field(min_length=1)


KernelSpec = Annotated[
    Terms | Annotated[KernelSum, Tag("sum")],
    Discriminator(_form),
]
"""A kernel by name, by name with settings, a sum, a product, or one over inputs named each once:
`{ day = "Matern12", space = "Matern32" }`, where a key that is no input's is all the others."""


def make_kernel(given: Any, priors: dict[str, Parameter] | None = None) -> kernels.Kernel:
    """Make the kernel that a file asks for; `priors` are of the parameters of a single one.

    >>> make_kernel({"day": "Matern12", "space": "Matern32"}).groups
    ('day', 'space')
    """
    if isinstance(given, dict | KernelSum | KernelProduct) and priors:
        raise ValueError(
            "priors = go with a kernel by its name, and not with a sum or a product; leave one out"
        )
    if isinstance(given, KernelSum):
        return functools.reduce(operator.add, map(make_kernel, given.sum))
    if isinstance(given, KernelProduct):
        return functools.reduce(operator.mul, map(make_kernel, given.product))
    if isinstance(given, dict):
        return kernels.separable(**{name: make_kernel(part) for name, part in given.items()})
    settings, name = {}, given
    if isinstance(given, KernelSettings):
        settings, name = dict(given.model_extra or {}), given.name
    if isinstance(settings.get("dims"), list):
        settings["dims"] = tuple(settings["dims"])
    return getattr(kernels, name)(**settings, **(priors or {}))


def make_inducing(given: Any) -> Any:
    """Make inducing inputs of what a file says.

    A table such as `{ number = 600, strategy = "grid" }` has the settings of `Inducing`. One of
    lists, `{ x = [0.0, 9.0, 4], day = [0.0, 29.0, 30] }`, has all combinations of evenly spaced
    values of each input, in the order of the data's inputs, given as first, last and number. A
    table of tables has them by source.

    >>> make_inducing({"x": [0.0, 4.0, 3], "t": [0.0, 1.0, 2]}).tolist()
    [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0], [4.0, 0.0], [4.0, 1.0]]
    """
    if not isinstance(given, dict):
        return given
    if given and all(isinstance(value, dict) for value in given.values()):
        return {source: make_inducing(value) for source, value in given.items()}
    if not all(isinstance(side, list) and len(side) == 3 for side in given.values()):
        return Inducing(**given)
    sides = [np.linspace(first, last, number) for first, last, number in given.values()]
    return np.stack([side.ravel() for side in np.meshgrid(*sides, indexing="ij")], -1)


class OptimiserSpec(BaseModel):
    """An optimiser by name, with settings: `{ name = "Adam", steps = 2000, batch = 1024 }`."""

    model_config = ConfigDict(extra="allow")
    name: Literal["LBFGS", "Adam"]

    def build(self) -> Any:
        """Make the optimiser."""
        return getattr(inference, self.name)(**(self.model_extra or {}))
