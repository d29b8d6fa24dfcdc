"""A fit in words: its data, how it went, and what was found."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import jax
import numpy as np

from mrgp.kernels import Stationary, lengthscale_inputs
from mrgp.parameters import Parameter, at_limit, unwrap

if TYPE_CHECKING:
    from mrgp.inference.fits import Fit


def account(fit: "Fit") -> str:
    """Describe a fit: data, status, parameters.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5], name="tubes")
    >>> print(account(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]))))
    MRGP, converged: ... steps
      log evidence or bound, with log prior: ...
      tubes, value: 3 values
      exact: the training data are kept in the fit, and saved with it
      kernel.lengthscale ...
    """
    lines = [f"{fit.name}, {fit.status}"]
    lines += [f"  chosen: {reason}" for reason in fit.reasons]
    if len(fit.history):
        lines.append(f"  log evidence or bound, with log prior: {fit.history[-1]:.3f}")
    lines += [f"  careful: {words}" for words in fit.warnings]
    lines += [f"  {_values(fit, process)}" for process in fit.counts]
    if fit.treatment == "keep":
        lines.append("  parameters are those of each source on its own")
    if fit.treatment == "adjusted":
        lines.append("  the posterior was widened by adjust_curvature")
    lines.append(f"  {fit.model.account(fit.state)}")
    values, named = fit.parameters(), fit.model.named()
    width = max(map(len, values), default=0)
    for name, value in values.items():
        numbers = ", ".join(_along(fit, name, named.get(name), np.ravel(value)))
        lines.append(f"  {name:<{width}}  {numbers}{_remark(named.get(name))}")
    lines += [f"  {words}" for words in _ellipses(fit)]
    return "\n".join(lines)


def _ellipses(fit: "Fit") -> Iterator[str]:
    """Say how long, and along what, the ellipses of kernels with a full metric are."""
    leaves = jax.tree.leaves(fit.model, is_leaf=lambda node: isinstance(node, Stationary))
    for kernel in leaves:
        if isinstance(kernel, Stationary) and kernel.metric == "full":
            lengths, axes = unwrap(kernel).ellipse
            first, second, *_ = (fit.inputs[d] for d in kernel.columns)
            angle = np.degrees(np.arctan2(axes[1, 0], axes[0, 0])) % 180
            shown = ", ".join(f"{length:.4g}" for length in lengths)
            yield (
                f"lengthscales along the axes of an ellipse: {shown}; the longest"
                f" {angle:.0f} degrees from {first} towards {second}"
            )


def _values(fit: "Fit", process: tuple[str, str]) -> str:
    """Say how many values a source has of a task, and what was done with them."""
    used, missing = fit.counts[process]
    dropped = f", {missing} missing left out" if missing else ""
    weight = fit.weights[process]
    weighted = f", composite weight {weight:.3g}" if weight != 1 else ""
    values = "1 value" if used == 1 else f"{used} values"
    known = fit.units_of(process)
    units = f" in {known}" if known else ""
    return f"{process[0]}, {process[1]}: {values}{units}{dropped}{weighted}"


def _along(fit: "Fit", name: str, parameter: Parameter | None, numbers: np.ndarray) -> list[str]:
    """Write numbers, those of a lengthscale with the inputs that they are along."""
    shown = [f"{v:.4g}" for v in numbers]
    groups = lengthscale_inputs(fit.model).get(id(parameter), ())
    known = all(group and max(group) < len(fit.inputs) for group in groups)
    said = len(fit.inputs) == 1 or (len(groups) == 1 and "(" in name)
    if said or not known or len(groups) != len(shown):
        return shown
    names = (", ".join(fit.inputs[d] for d in group) for group in groups)
    return [f"{v} ({name})" for v, name in zip(shown, names, strict=True)]


def _remark(parameter: Parameter | None) -> str:
    if parameter is None:
        return ""
    if not parameter.trainable:
        return "  (fixed)"
    return "  (at its limit)" if at_limit(parameter) else ""
