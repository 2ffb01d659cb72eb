"""Backward induction and the forward pass on a GPU: the same layers, a kernel for each."""

from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from doublesampling.engine.devices import cuda_problem, quiet_launches
from doublesampling.errors import SettingError
from doublesampling.exact.cuda_kernels import (
    advance_kernel,
    edge_kernel,
    improve_kernel,
    share_kernel,
    split_kernel,
)
from doublesampling.exact.forward import Forward, StateLaw
from doublesampling.exact.layers import all_layers_size, blocks_of, check_room, layer_size
from doublesampling.exact.prior import exchangeable
from doublesampling.rules.compiled import SIMULATED

FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.int8]

_THREADS = 16 if SIMULATED else 128


def _free_memory() -> float:
    """Return the bytes that are free on the device, or say why there is none."""
    if SIMULATED:
        return float("inf")
    problem = cuda_problem()
    if problem:
        raise SettingError(problem)
    return float(cuda.current_context().get_memory_info()[0])


def _new(size: int, kind: Any = np.float64) -> Any:
    return np.zeros(size, dtype=kind) if SIMULATED else cuda.device_array(size, dtype=kind)


def _on_device(values: Any) -> Any:
    return values if SIMULATED else cuda.to_device(np.ascontiguousarray(values))


def _on_host(values: Any) -> Any:
    return values if SIMULATED else values.copy_to_host()


def _grid(time: int, mirrored: bool, columns: bool) -> tuple[Any, int]:
    """Return blocks and threads of a launch over all states of a layer, or over its columns (n1, s2)."""
    blocks = blocks_of(time, mirrored)
    widest = time + 1 if columns else max((n + 1) * (time - n + 1) for n in (time // 2, blocks - 1))
    return (-(-widest // _THREADS), blocks), _THREADS


@quiet_launches()
def optimal(horizon: int, prior: FloatArray, keep: int) -> tuple[float, list[ByteArray]]:
    """Return the value at the start, and the best arms of the first layers: see optimal.bayes_optimal."""
    mirrored = exchangeable(prior)

    def room(t: int) -> float:
        return 8.0 * (layer_size(t, mirrored) + layer_size(t - 1, mirrored)) + all_layers_size(min(keep, t), mirrored)

    check_room(horizon, room, _free_memory(), "The Bayes-optimal policy")
    after = _on_device(np.zeros(layer_size(horizon, mirrored)))
    value, best, pairs = _new(layer_size(horizon - 1, mirrored)), _new(1, np.int8), _on_device(prior)
    decisions: list[ByteArray] = []
    for time in range(horizon - 1, -1, -1):
        kept = time < keep
        if kept:
            best = _new(layer_size(time, mirrored), np.int8)
        grid, threads = _grid(time, mirrored, False)
        improve_kernel()[grid, threads](time, mirrored, pairs, after, value, best, kept)
        if kept:
            decisions.append(_on_host(best))
        after, value = value, after
    return float(_on_host(after[:1])[0]), decisions[::-1]


@quiet_launches()
def run(forward: Forward) -> StateLaw:
    """Return the law of the state at the horizon: see Forward.run."""
    mirrored, horizon = forward.mirrored, forward.horizon

    def room(t: int) -> float:
        return 8.0 * (2 * layer_size(t, mirrored) + layer_size(t - 1, mirrored) + 4 * (t + 1) ** 2)

    check_room(horizon, room, _free_memory(), "The law of all posterior states")
    largest = layer_size(horizon, mirrored)
    weight, after, share = _on_device(np.eye(1, largest)[0]), _new(largest), _new(layer_size(horizon - 1, mirrored))
    prior, corner, starts = _on_device(forward.prior), _on_device(forward.corner), _on_device(forward.corner)
    table = forward.settings.table
    settings = forward.settings._replace(table=_on_device(table if table.size else np.zeros((1, 1))))
    fill = share_kernel(forward.policy.kind, forward.form)
    for time in range(horizon):
        blocks, size = blocks_of(time, mirrored), layer_size(time, mirrored)
        edge_kernel()[-(-blocks // _THREADS), _THREADS](time, blocks, prior, corner, starts)
        grid, threads = _grid(time, mirrored, True)
        fill[grid, threads](time, prior, corner, starts, settings, weight, share)
        split_kernel()[-(-size // _THREADS), _THREADS](size, weight, share)
        grid, threads = _grid(time + 1, mirrored, False)
        advance_kernel()[grid, threads](time + 1, mirrored, share, weight, after)
        weight, after = after, weight
    return StateLaw(horizon, mirrored, _on_host(weight))
