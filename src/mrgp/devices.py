"""Sums over rows, shared among the devices that JAX has, here and on other hosts."""

import contextlib
import contextvars
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Int

AXIS = "rows"
"""The axis of a mesh along which rows are shared out."""

_at_work: contextvars.ContextVar[bool] = contextvars.ContextVar("at_work", default=False)


@contextlib.contextmanager
def over_devices(devices: int | Sequence[Any] | None = None) -> Iterator[Any]:
    """Share the sums over rows among devices, for all that is fitted in the context.

    `devices` are so many of those that JAX has, some of them, or all. Each works through a part of
    the rows, and their sums are added up: those of the collapsed bound, of bounds on minibatches,
    and of networks. After `jax.distributed.initialize` the devices are those of all processes, and
    each process runs the same program on the same data. Predictions are not shared. A mesh of your
    own, entered by `jax.set_mesh`, does the same if it has an axis "rows".

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 6.0, 40)[:, None]
    >>> data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]))])
    >>> with mrgp.over_devices(1):
    ...     fit = mrgp.fit(mrgp.MRGP(method="collapsed", inducing=8), data)
    >>> fit.status.code
    'converged'
    """
    there = jax.devices()
    chosen: Any = there if devices is None else devices
    if isinstance(devices, int):
        if not 1 <= devices <= len(there):
            raise ValueError(
                f"over_devices: JAX has {len(there)} devices; got {devices}. On processors, the"
                " variable XLA_FLAGS=--xla_force_host_platform_device_count=8 gives 8."
            )
        chosen = there[:devices]
    chosen = list(chosen)
    if not chosen or not all(isinstance(device, jax.Device) for device in chosen):
        raise TypeError(
            "over_devices takes a number of devices, or some of jax.devices(); got"
            f" {type(devices).__name__}."
        )
    kinds = (AxisType.Auto,)
    mesh = jax.make_mesh((len(chosen),), (AXIS,), axis_types=kinds, devices=chosen)
    with jax.set_mesh(mesh):
        yield mesh


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let this process work by itself, whatever is shared around it.

    >>> with over_devices(1), alone():
    ...     jax.sharding.get_abstract_mesh().empty
    True
    """
    if jax.sharding.get_abstract_mesh().empty:
        yield
        return
    with jax.set_mesh(jax.sharding.Mesh(np.empty((), object), ())):
        yield


def shares() -> int:
    """Return among how many devices rows are shared here; within a share there is one.

    >>> with over_devices(1):
    ...     shares()
    1
    """
    mesh = jax.sharding.get_abstract_mesh()
    if _at_work.get():
        return 1
    return 1 if mesh.empty else dict(mesh.shape).get(AXIS, 1)


def sum_shared(function: Callable[[Int[Array, " b"]], Any], count: int) -> Any:
    """Sum what a function gives for the numbers of rows, each device having its share of them.

    Numbers from `count` on fill up the last share, and must add nothing.

    >>> x = jnp.arange(5.0)
    >>> float(sum_shared(lambda rows: jnp.sum(jnp.where(rows < 5, x[rows], 0.0)), 5))
    10.0
    """
    devices = shares()
    rows = jnp.arange(devices * math.ceil(count / devices)).reshape(devices, -1)
    # Along the first axis the work is independent: the compiler gives each device its part.
    return jax.tree.map(lambda part: jnp.sum(part, 0), each_share(function, rows))


def each_share(function: Callable[..., Any], *arrays: Array) -> Any:
    """Apply a function to parts of arrays along their first axis, each on a device of its own.

    >>> each_share(jnp.sum, jnp.ones((1, 3))).tolist()
    [3.0]
    """
    parts = [_shared_out(x) for x in arrays]
    token = _at_work.set(True)
    try:
        found = jax.vmap(function)(*parts)
    finally:
        _at_work.reset(token)
    return jax.tree.map(_shared_out, found)


def gathered(values: Array) -> Array:
    """Return an array that every device has the whole of, so that every process can read it.

    >>> gathered(jnp.ones(2)).tolist()
    [1.0, 1.0]
    """
    return values if shares() == 1 else jax.lax.with_sharding_constraint(values, PartitionSpec())


def _shared_out(values: Array) -> Array:
    if shares() == 1:
        return values
    return jax.lax.with_sharding_constraint(values, PartitionSpec(AXIS))


def beyond(rows: Int[Array, " b"], size: int, count: int) -> Int[Array, " c"]:
    """Fill numbers of rows up to a size with ones that are beyond the last.

    >>> beyond(jnp.arange(2), 3, count=9).tolist()
    [0, 1, 9]
    """
    return jnp.concatenate([rows, jnp.full(size - rows.shape[0], count, rows.dtype)])
