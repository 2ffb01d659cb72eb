"""The loop over steps on a GPU thread, over the same steps as the CPU; one thread plays one realization.

A kernel is made for a family, a policy, a law, a number of arms and the sizes of a thread's own arrays, which must be
known when it is compiled. Each warp adds up its 32 realizations, in a fixed order; the host adds up the warps.
"""

import functools
import importlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from doublesampling.rules.compiled import SIMULATED
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, PANEL_ROWS
from doublesampling.rules.optimal_arm.recurrence import TRACK_SIZE
from doublesampling.rules.optimal_arm.regions import SURVEY_COLUMNS
from doublesampling.rules.specialise import written_out
from doublesampling.rules.steps import CATEGORIES, FRESH, PAIRS, TRACKED, begin_realization, step

FloatArray = NDArray[np.float64]
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


@functools.cache
def cuda_kernel(family: int, kind: int, form: int, law: int, sizes: Sizes) -> Any:
    """Return the kernel that plays realizations of several problems; the first four as in kernels.cpu_kernel."""
    arms, size, shown_size = sizes.arms, sizes.dimension, sizes.shown
    survey_shape, panel_shape = (arms, SURVEY_COLUMNS), (arms + 1, PANEL_ROWS, PANEL_NODES)
    marginals_shape, priors_shape, samples_shape = (arms, 3), (arms, 2), (max(sizes.samples, 1), arms)
    tally_shape, partial_shape = (sizes.tally + EXTRA_ROWS, max(sizes.tally, 1)), (sizes.tally + 2, PANEL_NODES)
    matrix_shape, root_shape = (arms, size), (arms, size, size)

    def play(launch, worlds, priors, policy, results):  # type: ignore[no-untyped-def]
        warps = results.sums.shape[1]
        place = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // WARP
        q, warp = place // warps, place % warps
        if q >= launch.bandits.size:
            return
        r = warp * WARP + cuda.threadIdx.x % WARP
        active = r < launch.realizations
        world: Any
        prior: Any
        state: Any
        parameters = cuda.local.array(marginals_shape, np.float64)
        if family in (TRACKED, FRESH):
            world = BernoulliWorld(worlds.means[q])
            prior = BetaPrior(priors.alpha[q], priors.beta[q], priors.track[q])
            track = cuda.local.array(TRACK_SIZE, np.float64)
            # densities are not carried on a GPU: they would not fit
            state = BetaState(track, track, track, parameters[:, 0], parameters[:, 1])
        elif family == PAIRS:
            world = StagedWorld(worlds.means[q], worlds.every)
            prior = PairPrior(priors.first[q], priors.second[q], priors.discount)
            state = NoState(0)
        elif family == CATEGORIES:
            world = CategoricalWorld(worlds.chances[q], worlds.values[q])
            prior = DirichletPrior(priors.concentration[q], priors.discount)
            state = DirichletState(cuda.local.array(matrix_shape, np.float64), cuda.local.array(size, np.float64))
        else:
            world = LinearWorld(
                worlds.weights[q], worlds.noise[q], worlds.context, worlds.path[q], worlds.shared, worlds.pays
            )
            prior = WeightsPrior(
                priors.mean[q], priors.root[q], priors.alpha[q], priors.beta[q], priors.noise[q], priors.sees_context,
                priors.anchors[q],
            )  # fmt: skip
            state = WeightsState(
                cuda.local.array(matrix_shape, np.float64),
                cuda.local.array(root_shape, np.float64),
                cuda.local.array(arms, np.float64),
                cuda.local.array(arms, np.float64),
                cuda.local.array(shown_size, np.float64),
                cuda.local.array(size, np.float64),
                cuda.local.array(size, np.float64),
                cuda.local.array(size, np.float64),
            )
        scratch = Scratch(
            parameters,
            cuda.local.array(priors_shape, np.float64),
            cuda.local.array(arms, np.float64),
            cuda.local.array(arms, np.float64),
            cuda.local.array(arms, np.int64),
            cuda.local.array(arms, np.float64),
            cuda.local.array(arms, np.float64),
            cuda.local.array(survey_shape, np.float64),
            cuda.local.array(panel_shape, np.float64),
            cuda.local.array(samples_shape, np.float64),
            cuda.local.array(tally_shape, np.float64),
            cuda.local.array(partial_shape, np.float64),
            state,
        )
        best = begin_realization(family, world, prior, scratch)
        regret = observed = 0.0
        for t in range(launch.horizon):
            address = (launch.seed, launch.bandits[q], np.uint64(launch.first + r), np.uint64(t + 1))
            arm, number, paid, best = step(family, kind, form, law, address, world, prior, policy, scratch, best)
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
    special.__qualname__ = "_".join(["play", *map(str, (family, kind, form, law, *sizes))])
    return cuda.jit(**_OPTIONS)(digest_name(special))
