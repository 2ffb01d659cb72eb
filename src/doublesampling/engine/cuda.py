"""Simulations on a GPU: problems of the same sizes are stacked, launched together, and their sums become moments."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from doublesampling.engine.blocks import Block, Moments
from doublesampling.engine.cuda_kernels import WARP, Launch, Sizes, Sums, add_up_warps, cuda_kernel
from doublesampling.engine.devices import quiet_launches
from doublesampling.engine.families import FAMILIES
from doublesampling.engine.packed import PackedPolicy, PackedProblem
from doublesampling.engine.plan import Plan
from doublesampling.rules.bundles import P_ROW, SQUARED_ROWS
from doublesampling.rules.choose import kinds
from doublesampling.rules.compiled import SIMULATED

FloatArray = NDArray[np.float64]

_THREADS = 128
_MOST_SUMS = 2**27  # numbers that one launch may bring back


def name() -> str:
    """Return the device's name, for the record."""
    found = cuda.get_current_device().name
    return f"cuda, {found.decode() if isinstance(found, bytes) else found}"


def _to_device(value: Any) -> Any:
    """Return an array, or a bundle of them, on the device; the simulator takes them as they are."""
    if isinstance(value, tuple):
        return type(value)(*map(_to_device, value))
    if not isinstance(value, np.ndarray) or SIMULATED:
        return value
    if value.size == 0:  # a device holds no empty array; nobody reads this one
        value = np.zeros(tuple(max(length, 1) for length in value.shape), value.dtype)
    return cuda.to_device(np.ascontiguousarray(value))


def _to_host(value: Any) -> FloatArray:
    return value if isinstance(value, np.ndarray) else np.asarray(value.copy_to_host())


def _new(shape: tuple[int, ...]) -> Any:
    # the simulator adds into its sums; a device writes every number
    return np.zeros(shape) if SIMULATED else cuda.device_array(shape, np.float64)


def _signature(bundle: Any) -> tuple[Any, ...]:
    """Return what problems of one launch have in common: the shapes of arrays, and all other values."""
    return tuple(value.shape if isinstance(value, np.ndarray) else value for value in bundle)


def _groups(plan: Plan) -> Iterator[list[int]]:
    """Yield the problems that one kernel can play together."""
    found: dict[Any, list[int]] = {}
    for i, problem in enumerate(plan.problems):
        key = (problem.family, problem.law, *_signature(problem.world), *_signature(problem.prior))
        found.setdefault(key, []).append(i)
    yield from found.values()


def stacked(bundles: list[Any]) -> Any:
    """Return one bundle for several problems: arrays get a first dimension (problem), other values are shared."""
    columns = zip(*bundles, strict=True)
    return type(bundles[0])(*(np.stack(c) if isinstance(c[0], np.ndarray) else c[0] for c in columns))


def kernel_for(problem: PackedProblem, policy: PackedPolicy) -> Any:
    """Return the kernel of a problem and a policy."""
    family = FAMILIES[problem.family]
    sizes = Sizes(
        arms=problem.arms,
        dimension=problem.dimension,
        shown=getattr(problem.world, "weights", np.empty((1, 1))).shape[1],
        samples=family.samples(problem, policy),
        tally=problem.arms if policy.kind == kinds.INFORMATION_DIRECTED else 0,
    )
    step_code = family.step_code(problem, policy, False)
    return cuda_kernel(step_code, policy.kind, policy.form_for(problem), problem.law, sizes)


def play_group(plan: Plan, group: list[int], policy: int, first: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Return sums (problem, row, column) over so many realizations of a group, and their final regrets."""
    problems, packed = [plan.problems[i] for i in group], plan.policies[policy]
    warps = -(-count // WARP)
    rows = P_ROW + problems[0].arms + SQUARED_ROWS
    results = Sums(_new((len(group), warps, rows, plan.times.size)), _new((len(group), count)))
    launch = Launch(
        np.uint64(plan.seed), np.array(group, dtype=np.uint64), first, count, plan.horizon, np.asarray(plan.columns)
    )
    kernel_for(problems[0], packed)[-(-len(group) * warps * WARP // _THREADS), _THREADS](
        _to_device(launch),
        _to_device(stacked([q.world for q in problems])),
        _to_device(stacked([q.prior for q in problems])),
        _to_device(packed.settings_for(problems[0])),
        results,
    )
    total = _new((len(group), rows, plan.times.size))
    add_up_warps[-(-total.size // _THREADS), _THREADS](results.sums, total)
    return _to_host(total), _to_host(results.final)


@quiet_launches()
def play_all(plan: Plan) -> list[list[Moments]]:
    """Play every problem and policy, in launches whose results fit."""
    moments = [[Moments() for _ in plan.policies] for _ in plan.problems]
    for group in _groups(plan):
        rows = P_ROW + plan.problems[group[0]].arms + SQUARED_ROWS
        threads = max(WARP, _MOST_SUMS * WARP // (rows * plan.times.size * len(group)) // WARP * WARP)
        for policy in range(len(plan.policies)):
            for piece, first in enumerate(range(0, plan.realizations, threads)):
                count = min(threads, plan.realizations - first)
                sums, final = play_group(plan, group, policy, first, count)
                for row, i in enumerate(group):
                    moments[i][policy].add(piece, _block(sums[row], final[row]))
    return moments


def _block(sums: FloatArray, final: FloatArray) -> Block:
    """Return the means and squared deviations that blocks are merged by, from sums (row, column)."""
    means = sums[:-SQUARED_ROWS] / final.size
    squares = np.maximum(sums[-SQUARED_ROWS:] - sums[:SQUARED_ROWS] * means[:SQUARED_ROWS], 0.0)
    return Block(means, squares, final, np.empty((0, 0, 0)))
