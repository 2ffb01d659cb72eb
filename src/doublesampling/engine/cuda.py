"""Realizations on a GPU: one thread walks one realization, over the same rules as the CPU.

A kernel is made for a family of beliefs, a number of arms and a dimension, because a thread's own arrays need sizes
known when it is compiled. Each warp adds up its 32 realizations, in a fixed order, and the host adds up the warps.
"""

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from doublesampling.engine.blocks import Block, Moments
from doublesampling.engine.families.common import PackedProblem
from doublesampling.engine.plan import Plan
from doublesampling.rules import lane, optimality, play, recurrence
from doublesampling.rules.compiled import SIMULATED

FloatArray = NDArray[np.float64]

_WARP = 32
_THREADS = 128
_OPTIONS = {} if SIMULATED else {"max_registers": 128}  # measured: a quarter quicker with three arms than without
_EVERY_LANE = 0xFFFFFFFF
_MOST_SUMS = 2**27  # numbers that one launch may bring back
_ROWS = 6  # regret, observed regret, their squares, whether the best arm was played, N; then p of every arm


def name() -> str:
    """The device, for the record."""
    found = cuda.get_current_device().name
    return f"cuda, {found.decode() if isinstance(found, bytes) else found}"


@cuda.jit(device=True)
def _add_up(value, out):  # type: ignore[no-untyped-def]
    """The sum of a value over the 32 lanes of a warp, in a fixed order, written by its first lane."""
    if SIMULATED:  # the simulator has no warps
        cuda.atomic.add(out, 0, value)
        return
    for shift in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(_EVERY_LANE, value, shift)
    if cuda.threadIdx.x % _WARP == 0:
        out[0] = value


@cuda.jit(device=True)
def _record(active, regret, observed, correct, number, p, out, column):  # type: ignore[no-untyped-def]
    """Add one time step of a warp to its sums, out (row, column)."""
    share = 1.0 if active else 0.0
    _add_up(share * regret, out[0, column:])
    _add_up(share * observed, out[1, column:])
    _add_up(share * regret * regret, out[2, column:])
    _add_up(share * observed * observed, out[3, column:])
    _add_up(share if correct else 0.0, out[4, column:])
    _add_up(share * number, out[5, column:])
    for a in range(p.size):
        _add_up(p[a] if active else 0.0, out[_ROWS + a, column:])


@cuda.jit
def _add_up_warps(sums, total):  # type: ignore[no-untyped-def]
    """Sums (problem, warp, row, column) become totals (problem, row, column), warp by warp."""
    place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    problems, warps, rows, columns = sums.shape
    if place < problems * rows * columns:
        problem, row, column = place // (rows * columns), place // columns % rows, place % columns
        value = 0.0
        for warp in range(warps):
            value += sums[problem, warp, row, column]
        total[problem, row, column] = value


@functools.cache
def beta_kernel(arms: int, tracked_arms: bool) -> Any:
    """The kernel of Bernoulli bandits with Beta beliefs and so many arms."""
    survey_shape = (arms, optimality.SURVEY_COLUMNS)
    panel_shape = (arms + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES)
    marginals_shape, priors_shape, track_size = (arms, 3), (arms, 2), recurrence.TRACK_SIZE

    @cuda.jit(**_OPTIONS)
    def kernel(  # type: ignore[no-untyped-def]
        seed,
        bandits,
        first,
        realizations,
        horizon,
        truths,
        alphas,
        betas,
        tracks,
        whole,
        real,
        alarms,
        columns,
        sums,
        final,
    ):
        warps = sums.shape[1]
        place = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // _WARP
        problem, warp = place // warps, place % warps
        if problem >= truths.shape[0]:
            return
        r = warp * _WARP + cuda.threadIdx.x % _WARP
        active = r < realizations
        parameters = cuda.local.array(marginals_shape, np.float64)
        priors = cuda.local.array(priors_shape, np.float64)
        p = cuda.local.array(arms, np.float64)
        values = cuda.local.array(arms, np.float64)
        starts = cuda.local.array(arms, np.float64)
        votes = cuda.local.array(arms, np.int64)
        track = cuda.local.array(track_size, np.float64)
        survey = cuda.local.array(survey_shape, np.float64)
        panel = cuda.local.array(panel_shape, np.float64)
        truth = truths[problem]
        alpha, beta = parameters[:, 0], parameters[:, 1]
        kind = whole[play.KIND]
        tracked = tracked_arms and play.may_follow(kind, whole[play.SAMPLES])
        best = truth[0]
        for a in range(arms):
            best = max(best, truth[a])
            parameters[a, 0], parameters[a, 1], parameters[a, 2] = alphas[problem, a], betas[problem, a], 0.0
            priors[a, 0], priors[a, 1] = alphas[problem, a], betas[problem, a]
            starts[a], p[a] = math.nan, math.nan
        if tracked_arms:
            for i in range(track_size):
                track[i] = tracks[problem, i]
        regret = observed = 0.0
        for t in range(horizon):
            address = (np.uint64(seed), bandits[problem], np.uint64(first + r), np.uint64(t + 1))
            arm, number, paid, _ = lane.beta_step(
                address, t + 1.0, truth, whole, real, alarms, tracked, False, parameters, priors, alpha, beta, track,
                p, votes, values, starts, survey, None, None, panel, None,
            )  # fmt: skip
            regret += best - truth[arm]
            observed += best - paid
            if columns[t] >= 0:
                _record(active, regret, observed, truth[arm] == best, number, p, sums[problem, warp], columns[t])
        if active:
            final[problem, r] = regret

    return kernel


@functools.cache
def gaussian_kernel(arms: int, size: int, shown_size: int) -> Any:
    """The kernel of worlds that pay x^T w with Normal-Inverse-Gamma beliefs."""
    survey_shape = (arms, optimality.SURVEY_COLUMNS)
    panel_shape = (arms + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES)
    marginals_shape, mean_shape, root_shape = (arms, 3), (arms, size), (arms, size, size)

    @cuda.jit(**_OPTIONS)
    def kernel(  # type: ignore[no-untyped-def]
        seed, bandits, first, realizations, horizon, weights, noise, context_kind, path, shared, pays,
        prior_mean, prior_root, prior_alpha, prior_beta, known_noise, sees_context,
        whole, real, alarms, columns, sums, final,
    ):  # fmt: skip
        warps = sums.shape[1]
        place = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // _WARP
        problem, warp = place // warps, place % warps
        if problem >= weights.shape[0]:
            return
        r = warp * _WARP + cuda.threadIdx.x % _WARP
        active = r < realizations
        parameters = cuda.local.array(marginals_shape, np.float64)
        mean = cuda.local.array(mean_shape, np.float64)
        root = cuda.local.array(root_shape, np.float64)
        alpha = cuda.local.array(arms, np.float64)
        beta = cuda.local.array(arms, np.float64)
        work = cuda.local.array(size, np.float64)
        shown = cuda.local.array(shown_size, np.float64)
        seen = cuda.local.array(size, np.float64)
        truth = cuda.local.array(arms, np.float64)
        p = cuda.local.array(arms, np.float64)
        values = cuda.local.array(arms, np.float64)
        starts = cuda.local.array(arms, np.float64)
        votes = cuda.local.array(arms, np.int64)
        survey = cuda.local.array(survey_shape, np.float64)
        panel = cuda.local.array(panel_shape, np.float64)
        for i in range(size):
            seen[i] = 1.0
        for a in range(arms):
            alpha[a], beta[a] = prior_alpha[problem, a], prior_beta[problem, a]
            starts[a], p[a] = math.nan, math.nan
            for i in range(size):
                mean[a, i] = prior_mean[problem, a, i]
                for j in range(size):
                    root[a, i, j] = prior_root[problem, a, i, j]
        regret = observed = 0.0
        for t in range(horizon):
            address = (np.uint64(seed), bandits[problem], np.uint64(first + r), np.uint64(t + 1))
            where = (
                np.uint64(seed), bandits[problem], np.uint64(0) if shared else np.uint64(first + r), np.uint64(t + 1),
            )  # fmt: skip
            arm, number, paid, best = lane.gaussian_step(
                address, where, weights[problem], noise[problem], context_kind, path[problem], pays,
                known_noise[problem], sees_context, whole, real, alarms, mean, root, alpha, beta, shown, seen, work,
                truth, parameters, p, votes, values, starts, survey, panel, None, None, None,
            )  # fmt: skip
            regret += best - truth[arm]
            observed += best - paid
            if columns[t] >= 0:
                _record(active, regret, observed, truth[arm] == best, number, p, sums[problem, warp], columns[t])
        if active:
            final[problem, r] = regret

    return kernel


def _groups(plan: Plan) -> Iterator[list[int]]:
    """Problems that one kernel can play together: of the same family, sizes and kind of world."""
    found: dict[Any, list[int]] = {}
    for i, problem in enumerate(plan.problems):
        key: list[Any] = [problem.family, problem.arms, problem.dimension]
        if problem.family == "linear":
            weights, _, kind, path, shared, pays = problem.world
            key += [weights.shape, kind, path.shape, shared, pays, problem.prior[5]]
        found.setdefault(tuple(key), []).append(i)
    yield from found.values()


def _stacked(problems: list[PackedProblem]) -> tuple[Any, list[Any]]:
    """A kernel and what it takes of several problems: arrays stacked, settings that they share as they are."""
    one = problems[0]
    if one.family == "beta":
        parts = list(zip(*((*q.world, *q.prior) for q in problems), strict=True))
        return beta_kernel(one.arms, one.prior[2].size > 0), [np.array(part) for part in parts]
    worlds, priors = zip(*(q.world for q in problems), strict=True), zip(*(q.prior for q in problems), strict=True)
    weights, noise, kinds, paths, shared, pays = worlds
    mean, root, alpha, beta, known, sees, _ = priors
    kernel = gaussian_kernel(one.arms, one.dimension, one.world[0].shape[1])
    arrays = [np.array(weights), np.array(noise), kinds[0], np.array(paths), shared[0], pays[0]]
    return kernel, arrays + [np.array(part) for part in (mean, root, alpha, beta, known)] + [sees[0]]


def play_group(plan: Plan, group: list[int], policy: int, first: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Sums (problem, row, column) over so many realizations of a group, and their final regrets."""
    kernel, arrays = _stacked([plan.problems[i] for i in group])
    arms = plan.problems[group[0]].arms
    packed = plan.policies[policy]
    warps = -(-count // _WARP)
    shape = (len(group), warps, _ROWS + arms, plan.times.size)
    # the simulator adds into it; a device writes every number
    sums = cuda.to_device(np.zeros(shape)) if SIMULATED else cuda.device_array(shape, np.float64)
    final = cuda.device_array((len(group), count), np.float64)
    on_device = [cuda.to_device(part) if isinstance(part, np.ndarray) else part for part in arrays]
    blocks = -(-len(group) * warps * _WARP // _THREADS)
    kernel[blocks, _THREADS](
        np.uint64(plan.seed), cuda.to_device(np.array(group, dtype=np.uint64)), first, count, plan.horizon, *on_device,
        *map(cuda.to_device, (packed.whole, packed.real, packed.table_of(arms), plan.columns)), sums, final,
    )  # fmt: skip
    total = cuda.device_array((len(group), _ROWS + arms, plan.times.size), np.float64)
    _add_up_warps[-(-total.size // _THREADS), _THREADS](sums, total)
    return total.copy_to_host(), final.copy_to_host()


def play_all(plan: Plan) -> list[list[Moments]]:
    """Every problem and policy, in launches whose results fit."""
    moments = [[Moments() for _ in plan.policies] for _ in plan.problems]
    for group in _groups(plan):
        rows = _ROWS + plan.problems[group[0]].arms
        lanes = max(_WARP, _MOST_SUMS * _WARP // (rows * plan.times.size * len(group)) // _WARP * _WARP)
        for policy in range(len(plan.policies)):
            for piece, first in enumerate(range(0, plan.realizations, lanes)):
                count = min(lanes, plan.realizations - first)
                sums, final = play_group(plan, group, policy, first, count)
                for row, i in enumerate(group):
                    moments[i][policy].add(piece, _block(sums[row], final[row]))
    return moments


def _block(sums: FloatArray, final: FloatArray) -> Block:
    """Sums become the means and squared deviations that blocks are merged by."""
    means = sums / final.size
    squares = np.maximum(sums[2:4] - sums[:2] * means[:2], 0.0)
    return Block(np.delete(means, (2, 3), axis=0), squares, final, np.empty((0, 0, 0)))
