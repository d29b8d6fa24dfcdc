"""A model as a file describes it: recipe and kernels by name, settings, and an optimiser."""

import dataclasses
import functools
import operator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, Discriminator, Field, Tag, model_validator

from mrgp import inference, kernels, models
from mrgp.gp import Inducing
from mrgp.parameters import LogNormal, Parameter, positive
from mrgp.supports import GaussLegendre
from mrgp.supports.quadrature import mesh

KERNELS = ("kernel", "kernel_f", "kernel_w", "kernel_base", "kernel_deep")
Stationary = Literal["RBF", "Matern12", "Matern32", "Matern52", "RationalQuadratic"]
Other = Literal[
    "Polynomial", "ArcCosine", "SpectralMixture", "Periodic", "Linear", "Constant", "White"
]
KernelName = Literal[Stationary, Other]


class KernelSettings(BaseModel, extra="allow"):
    """A kernel by name, with settings: `{ name = "Matern32", lengthscale = 100.0 }`."""

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


class KernelProduct(BaseModel, extra="forbid"):
    """A product of kernels that say themselves which inputs they see: `{ product = [...] }`."""

    product: list[OneKernel] = Field(min_length=1)


Terms = Named | Products | Annotated[KernelProduct, Tag("product")]


class KernelSum(BaseModel, extra="forbid"):
    """A sum of kernels: `{ sum = ["RBF", { name = "Matern12", dims = ["lon", "lat"] }] }`."""

    sum: list[Annotated[Terms, Discriminator(_form)]] = Field(min_length=1)


KernelSpec = Annotated[Terms | Annotated[KernelSum, Tag("sum")], Discriminator(_form)]
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
    return mesh(*(np.linspace(first, last, number) for first, last, number in given.values()))


class OptimiserSpec(BaseModel, extra="allow"):
    """An optimiser by name, with settings: `{ name = "Adam", steps = 2000, batch = 1024 }`."""

    name: Literal["LBFGS", "Adam"]

    def build(self) -> Any:
        """Make the optimiser."""
        return getattr(inference, self.name)(**(self.model_extra or {}))


class Described(BaseModel, extra="forbid"):
    """A model: recipe and kernels by name, settings, and an optimiser.

    `center_point` takes regions for their centres; `averages` names the sources that average
    others' values, errors included. `priors` has median and log-sd of log-normal priors of the
    kernel's parameters, `noise` those of noise variances, or variances to start from. `bases` has
    kernels of a deep model's bases by source. `nodes` is how many Gauss-Legendre nodes a region has
    along each side, where it has any. The recipe "auto" is the model that is chosen for the data.

    >>> Described(recipe="MRGPRN", kernel_w="constant", options={"latents": 2}).build().latents
    2
    """

    beside_auto: ClassVar[tuple[str, ...]] = ("recipe",)
    recipe: Literal["MRGP", "VBAgg", "MRGPRN", "MRDGP", "Cascade", "auto"]
    center_point: bool = False
    kernel: KernelSpec | None = None
    kernel_f: KernelSpec | None = None
    kernel_w: KernelSpec | Literal["constant"] | None = None
    kernel_base: KernelSpec | None = None
    kernel_deep: KernelSpec | None = None
    bases: dict[str, KernelSpec] | None = None
    averages: dict[str, str] | None = None
    priors: dict[str, tuple[float, float]] = Field(default_factory=dict)
    noise: dict[str, tuple[float, float] | float] | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    optimiser: OptimiserSpec | None = None
    nodes: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def check_recipe(self) -> "Described":
        """Make the recipe once, so that a wrong setting is known when the file is read."""
        if not hasattr(models, self.recipe):
            given = sorted(self.model_fields_set.difference(self.beside_auto))
            if given:
                raise ValueError(
                    f'recipe = "{self.recipe}" chooses {given[0]} itself; leave it out'
                )
            return self
        known = [field.name for field in dataclasses.fields(getattr(models, self.recipe))]
        try:
            unknown = [name for name in self._settings() if name not in known]
            if unknown:
                raise ValueError(f"{self.recipe} has no {unknown[0]}=; it has {', '.join(known)}")
            _ = self.build(), self.build_optimiser()
        except TypeError as error:
            raise ValueError(str(error)) from None
        return self

    def build(self) -> Any:
        """Make the recipe; "auto" is left to `fit`."""
        if not hasattr(models, self.recipe):
            return self.recipe
        recipe = getattr(models, self.recipe)(**self._settings())
        if self.averages is not None:
            recipe = models.Dependent(recipe, self.averages)
        return models.CenterPoint(recipe) if self.center_point else recipe

    def build_optimiser(self) -> Any:
        """Make the optimiser, where there is one."""
        return None if self.optimiser is None else self.optimiser.build()

    def _settings(self) -> dict[str, Any]:
        priors = {name: _log_normal(*pair) for name, pair in self.priors.items()}
        made: dict[str, Any] = {
            name: given if given == "constant" else make_kernel(given, priors)
            for name in KERNELS
            if (given := getattr(self, name)) is not None
        }
        if self.bases is not None:
            made["kernel_base"] = {name: make_kernel(given) for name, given in self.bases.items()}
        if self.noise is not None:
            made["noise"] = {
                source: _log_normal(*given) if isinstance(given, tuple) else given
                for source, given in self.noise.items()
            }
        if self.nodes is not None:
            made["quadrature"] = GaussLegendre(self.nodes)
        return made | {
            name: make_inducing(value) if name.startswith("inducing") else value
            for name, value in self.options.items()
        }


def _log_normal(median: float, sd: float) -> Parameter:
    return positive(median, LogNormal(median, sd))
