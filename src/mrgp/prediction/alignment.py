"""A support for prediction, as a fit or chains have it: numbers, covariates, centre, labels."""

from mrgp.data import harmonise, rename_inputs
from mrgp.data.harmony import warn_of_plain_numbers
from mrgp.prediction.predictor import Predictor
from mrgp.supports import Support, extend_all, recoded


def aligned(fit: Predictor, support: Support) -> Support:
    """Return a support as the model has it: in the fit's numbers, with covariates, centred."""
    support = recoded(support, fit.covariates, "predict")
    known = fit.covariates or ()
    if not all(any(field.same(other) for other in known) for field in support.covariates or ()):
        raise ValueError(
            "predict: the support's covariates come from other fields than the fit's. Leave them"
            " out: the fit finds its own."
        )
    support = extend_all(_in_numbers_of(fit, support), fit.covariates, fit.inputs)
    if support.dimension != len(fit.inputs):
        raise ValueError(
            f"predict: the support has {support.dimension} inputs, but the fit has"
            f" {len(fit.inputs)}: {fit.inputs}."
        )
    if support.inputs is not None and support.inputs != fit.inputs:
        raise ValueError(
            f"predict: the support's inputs are {support.inputs}, but the fit's are {fit.inputs}."
            f" {_cure(support.inputs, fit.inputs)}"
        )
    return rename_inputs(support, fit.inputs).shift(fit.scaling.centre)


def _cure(names: tuple[str, ...], wanted: tuple[str, ...]) -> str:
    if set(names) == set(wanted):
        return "Give the columns in the order of the fit."
    return f"If they mean the same, give the support inputs={wanted}."


def _in_numbers_of(fit: Predictor, support: Support) -> Support:
    """Write a support on the axes of the fit; covariates, which come last, have none."""
    if support.dimension > len(fit.inputs):
        return support
    if support.inputs is None:
        support = rename_inputs(support, fit.inputs[: support.dimension])
    axes = None if fit.axes is None else fit.axes[: support.dimension]
    warn_of_plain_numbers(support, axes, "predict", "the fit has", stacklevel=5)
    return harmonise(support, axes, "predict")
