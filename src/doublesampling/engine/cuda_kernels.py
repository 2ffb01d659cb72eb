"""The loop over steps on a GPU thread, over the same steps as the CPU; one thread plays one realization.

A kernel is made for a step, a policy, a law, a number of arms and the sizes of a thread's own arrays, which must be
known when it is compiled. Each warp adds up its 32 realizations, in a fixed order; the host adds up the warps.

A thread's own arrays live as long as the function that makes them. The rules that make them are therefore copied into
the kernel (``spliced``); they stand in this file because the CUDA simulator replaces ``cuda`` file by file.
"""

import functools
import importlib
from typing import Any, NamedTuple

import numpy as np

from doublesampling.rules.bundles import (
    CORRECT,
    NUMBER,
    OBSERVED,
    P_ROW,
    REGRET,
    BernoulliWorld,
    BetaPrior,
    BetaState,
    CategoricalWorld,
    DirichletPrior,
    DirichletState,
    LinearWorld,
    NoState,
    PairPrior,
    Scratch,
    StagedWorld,
    Step,
    WeightsPrior,
    WeightsState,
)
from doublesampling.rules.cached import digest_name
from doublesampling.rules.choose.information_directed import EXTRA_ROWS
from doublesampling.rules.compiled import SIMULATED, spliced
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, PANEL_ROWS
from doublesampling.rules.optimal_arm.recurrence import TRACK_SIZE
from doublesampling.rules.optimal_arm.regions import SURVEY_COLUMNS
from doublesampling.rules.specialise import Constant, specialised, written_out
from doublesampling.rules.steps import CATEGORIES, FRESH, PAIRS, TRACKED, begin_realization, step

cuda: Any = importlib.import_module("numba.cuda")  # it has no types

WARP = 32
_EVERY_THREAD = 0xFFFFFFFF
# measured: a quarter quicker with three arms than without a limit
_OPTIONS: dict[str, Any] = {} if SIMULATED else {"max_registers": 128, "cache": True}


class Launch(NamedTuple):
    """The realizations of one launch, of several bandits, and which steps are recorded."""

    seed: np.uint64
    bandits: Any
    """(problem): the number of each bandit in its simulation."""
    first: int
    realizations: int
    horizon: int
    columns: Any
    """(time): the column where a step is recorded, -1 for nowhere."""


class Sums(NamedTuple):
    """Where a launch leaves its results: rows as in bundles.py, then the squares of the first two."""

    sums: Any
    """(problem, warp, row, column)"""
    final: Any
    """(problem, realization)"""


class Sizes(NamedTuple):
    """The sizes of a thread's own arrays."""

    arms: int
    dimension: int
    """Weights of an arm, or categories."""
    shown: int
    """Entries of the world's context."""
    samples: int
    """Posterior samples that a step draws."""
    tally: int
    """Arms, for information-directed sampling; else 0."""


@cuda.jit(device=True)
def _place(warps):  # type: ignore[no-untyped-def]
    """Return which problem and which warp of it a thread belongs to, and the number of its realization."""
    place = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // WARP
    q, warp = place // warps, place % warps
    return q, warp, warp * WARP + cuda.threadIdx.x % WARP


@cuda.jit(device=True)
def _add_up(value, out):  # type: ignore[no-untyped-def]
    """Write the sum of a value over the 32 threads of a warp, added in a fixed order."""
    if SIMULATED:  # the simulator has no warps
        cuda.atomic.add(out, 0, value)
        return
    for shift in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(_EVERY_THREAD, value, shift)
    if cuda.threadIdx.x % WARP == 0:
        out[0] = value


@cuda.jit(device=True)
def _record(active, step, p, out, column):  # type: ignore[no-untyped-def]
    """Add one step of a warp to its sums, out (row, column)."""
    share = 1.0 if active else 0.0
    _add_up(share * step.regret, out[REGRET, column:])
    _add_up(share * step.observed, out[OBSERVED, column:])
    _add_up(share if step.correct else 0.0, out[CORRECT, column:])
    _add_up(share * step.number, out[NUMBER, column:])
    for a in range(p.size):
        _add_up(p[a] if active else 0.0, out[P_ROW + a, column:])
    _add_up(share * step.regret * step.regret, out[P_ROW + p.size, column:])
    _add_up(share * step.observed * step.observed, out[P_ROW + p.size + 1, column:])


@cuda.jit(**({} if SIMULATED else {"cache": True}))
def add_up_warps(sums, total):  # type: ignore[no-untyped-def]
    """Add sums (problem, warp, row, column) to totals (problem, row, column), warp by warp."""
    place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    problems, warps, rows, columns = sums.shape
    if place < problems * rows * columns:
        problem, row, column = place // (rows * columns), place // columns % rows, place % columns
        value = 0.0
        for warp in range(warps):
            value += sums[problem, warp, row, column]
        total[problem, row, column] = value


@specialised(spliced)
def _world_of(step_code: Constant, worlds: Any, q: int) -> Any:
    """Return the world of problem q from the stacked worlds of a launch."""
    if step_code in (TRACKED, FRESH):
        return BernoulliWorld(worlds.means[q])
    if step_code == PAIRS:
        return StagedWorld(worlds.means[q], worlds.every)
    if step_code == CATEGORIES:
        return CategoricalWorld(worlds.chances[q], worlds.values[q])
    return LinearWorld(worlds.weights[q], worlds.noise[q], worlds.context, worlds.path[q], worlds.shared, worlds.pays)


@specialised(spliced)
def _prior_of(step_code: Constant, priors: Any, q: int) -> Any:
    """Return the prior of problem q from the stacked priors of a launch."""
    if step_code in (TRACKED, FRESH):
        return BetaPrior(priors.alpha[q], priors.beta[q], priors.track[q])
    if step_code == PAIRS:
        return PairPrior(priors.first[q], priors.second[q], priors.discount)
    if step_code == CATEGORIES:
        return DirichletPrior(priors.concentration[q], priors.discount)
    return WeightsPrior(
        priors.mean[q], priors.root[q], priors.alpha[q], priors.beta[q], priors.noise[q], priors.sees_context,
        priors.anchors[q],
    )  # fmt: skip


@specialised(spliced)
def _new_state(step_code: Constant, arms: Constant, dimension: Constant, shown: Constant, parameters: Any) -> Any:
    """Return what a belief keeps from step to step, in the thread's own memory."""
    if step_code in (TRACKED, FRESH):
        track = cuda.local.array(TRACK_SIZE, np.float64)
        # densities are not carried on a GPU: they would not fit
        return BetaState(track, track, track, parameters[:, 0], parameters[:, 1])
    if step_code == PAIRS:
        return NoState(0)
    if step_code == CATEGORIES:
        return DirichletState(cuda.local.array((arms, dimension), np.float64), cuda.local.array(dimension, np.float64))
    return WeightsState(
        mean=cuda.local.array((arms, dimension), np.float64),
        root=cuda.local.array((arms, dimension, dimension), np.float64),
        alpha=cuda.local.array(arms, np.float64),
        beta=cuda.local.array(arms, np.float64),
        shown=cuda.local.array(shown, np.float64),
        seen=cuda.local.array(dimension, np.float64),
        work=cuda.local.array(dimension, np.float64),
        scaled=cuda.local.array(dimension, np.float64),
    )


@specialised(spliced)
def _new_scratch(
    arms: Constant, samples: Constant, tally_rows: Constant, tally_columns: Constant, partial_rows: Constant,
    parameters: Any, state: Any,
) -> Any:  # fmt: skip
    """Return the work space of one realization, in the thread's own memory."""
    return Scratch(
        parameters=parameters,
        priors=cuda.local.array((arms, 2), np.float64),
        truth=cuda.local.array(arms, np.float64),
        p=cuda.local.array(arms, np.float64),
        votes=cuda.local.array(arms, np.int64),
        values=cuda.local.array(arms, np.float64),
        starts=cuda.local.array(arms, np.float64),
        survey=cuda.local.array((arms, SURVEY_COLUMNS), np.float64),
        panel=cuda.local.array((arms + 1, PANEL_ROWS, PANEL_NODES), np.float64),
        samples=cuda.local.array((samples, arms), np.float64),
        tally=cuda.local.array((tally_rows, tally_columns), np.float64),
        partial=cuda.local.array((partial_rows, PANEL_NODES), np.float64),
        state=state,
    )


@specialised(spliced)
def _new_marginals(arms: Constant) -> Any:
    """Return the marginals (arm, 3) of a thread; a state may be a view of them."""
    return cuda.local.array((arms, 3), np.float64)


@functools.cache
def cuda_kernel(step_code: int, kind: int, form: int, law: int, sizes: Sizes) -> Any:
    """Return the kernel that plays realizations of several problems; the first four as in kernels.cpu_kernel."""
    arms, dimension, shown, samples = sizes.arms, sizes.dimension, sizes.shown, max(sizes.samples, 1)
    tally_rows, tally_columns, partial_rows = sizes.tally + EXTRA_ROWS, max(sizes.tally, 1), sizes.tally + 2

    def play(launch, worlds, priors, policy, results):  # type: ignore[no-untyped-def]
        q, warp, r = _place(results.sums.shape[1])
        if q >= launch.bandits.size:
            return
        active = r < launch.realizations
        world = _world_of(step_code, worlds, q)
        prior = _prior_of(step_code, priors, q)
        marginals = _new_marginals(arms)
        state = _new_state(step_code, arms, dimension, shown, marginals)
        scratch = _new_scratch(arms, samples, tally_rows, tally_columns, partial_rows, marginals, state)
        best = begin_realization(step_code, world, prior, scratch)
        regret = observed = 0.0
        for t in range(launch.horizon):
            address = (launch.seed, launch.bandits[q], np.uint64(launch.first + r), np.uint64(t + 1))
            arm, number, paid, best = step(step_code, kind, form, law, address, world, prior, policy, scratch, best)
            mean = scratch.truth[arm]
            regret += best - mean
            observed += best - paid
            if launch.columns[t] >= 0:
                done = Step(arm, number, paid, mean == best, regret, observed)
                _record(active, done, scratch.p, results.sums[q, warp], launch.columns[t])
        if active:
            results.final[q, r] = regret

    if SIMULATED:
        return cuda.jit(play)
    special = written_out(play)
    special.__qualname__ = "_".join(["play", *map(str, (step_code, kind, form, law, *sizes))])
    return cuda.jit(**_OPTIONS)(digest_name(special))
