"""The loops over the states of a layer on a GPU: one thread per state, or per column (n1, s2).

The second index of a launch is n1; see rules/two_arm_states.py for where states are stored.
"""

import functools
import importlib
from typing import Any

import numpy as np

from doublesampling.rules.bundles import BetaState, Scratch
from doublesampling.rules.cached import digest_name
from doublesampling.rules.choose.share_of_first import share_of_first
from doublesampling.rules.compiled import SIMULATED
from doublesampling.rules.optimal_arm.recurrence import TRACK_SIZE
from doublesampling.rules.specialise import written_out
from doublesampling.rules.two_arm_states import NEGLIGIBLE, begin_block, offset, swap_failure_for_success

cuda: Any = importlib.import_module("numba.cuda")  # it has no types

_OPTIONS: dict[str, Any] = {} if SIMULATED else {"cache": True}


def _compile(function: Any, *constants: int) -> Any:
    """Compile a kernel with its constants written out, and keep it on disk."""
    if SIMULATED:
        return cuda.jit(function)
    special = written_out(function)
    special.__qualname__ = "_".join([function.__name__, *map(str, constants)])
    return cuda.jit(**_OPTIONS)(digest_name(special))


@functools.cache
def improve_kernel() -> Any:
    """Return the kernel of backward induction: see kernels.improve."""

    def improve(t, mirrored, prior, after, value, best, keep):  # type: ignore[no-untyped-def]
        n1 = cuda.blockIdx.y
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        n2 = t - n1
        if place >= (n1 + 1) * (n2 + 1):
            return
        s1, s2 = place // (n2 + 1), place % (n2 + 1)
        m1 = (prior[0, 0] + s1) / (prior[0, 0] + prior[0, 1] + n1)
        m2 = (prior[1, 0] + s2) / (prior[1, 0] + prior[1, 1] + n2)
        below = offset(t + 1, n1)
        at, ahead = offset(t + 1, n1 + 1) + s1 * (n2 + 1) + s2, n2 + 1
        if mirrored and n1 == n2:
            at, ahead = below + s1 + s2 * (n1 + 2), 1
        other = below + s1 * (n2 + 2) + s2
        first = m1 * (1.0 + after[at + ahead]) + (1.0 - m1) * after[at]
        second = m2 * (1.0 + after[other + 1]) + (1.0 - m2) * after[other]
        i = offset(t, n1) + place
        value[i] = max(first, second)
        if keep:
            close = 1e-12 * value[i]
            best[i] = 2 if abs(first - second) <= close else (0 if first > second else 1)

    return _compile(improve)


@functools.cache
def edge_kernel() -> Any:
    """Return the kernel that fills p and H where the first arm has only failures: starts (n1, s2, 2)."""

    def fill_edge(t, blocks, prior, corner, starts):  # type: ignore[no-untyped-def]
        n1 = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if n1 >= blocks:
            return
        n2 = t - n1
        parameters, track = cuda.local.array((2, 3), np.float64), cuda.local.array(TRACK_SIZE, np.float64)
        parameters[0, 0], parameters[0, 1] = prior[0, 0], prior[0, 1] + n1
        parameters[1, 0], parameters[1, 1] = prior[1, 0], prior[1, 1] + n2
        track[0], track[1] = corner[n1, n2, 0], corner[n1, n2, 1]
        for s2 in range(n2 + 1):
            starts[n1, s2, 0], starts[n1, s2, 1] = track[0], track[1]
            if s2 < n2:
                swap_failure_for_success(parameters[:, 0], parameters[:, 1], track, 1)

    return _compile(fill_edge)


@functools.cache
def share_kernel(kind: int, form: int) -> Any:
    """Return the kernel that fills the share of the first arm; a thread follows s1 at one (n1, s2)."""

    def fill_shares(t, prior, corner, starts, policy, weight, share):  # type: ignore[no-untyped-def]
        n1 = cuda.blockIdx.y
        s2 = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        n2 = t - n1
        if s2 > n2:
            return
        parameters, track = cuda.local.array((2, 3), np.float64), cuda.local.array(TRACK_SIZE, np.float64)
        priors, pair = cuda.local.array((2, 2), np.float64), cuda.local.array((1, 2), np.float64)
        alpha, beta = parameters[:, 0], parameters[:, 1]
        scratch = Scratch(
            parameters,
            priors,
            cuda.local.array(2, np.float64),
            cuda.local.array(2, np.float64),
            cuda.local.array(2, np.int64),
            cuda.local.array(2, np.float64),
            cuda.local.array(2, np.float64),
            pair,
            cuda.local.array((1, 1, 1), np.float64),
            pair,
            cuda.local.array((6, 2), np.float64),
            pair,
            BetaState(track, track, track, alpha, beta),
        )
        begin_block(corner, prior, n1, n2, scratch)
        parameters[0, 2] = parameters[1, 2] = 0.0
        alpha[1] += s2
        beta[1] -= s2
        track[0], track[1] = starts[n1, s2, 0], starts[n1, s2, 1]
        for a in range(2):
            priors[a, 0], priors[a, 1] = prior[a, 0], prior[a, 1]
        i = offset(t, n1) + s2
        for s1 in range(n1 + 1):
            if weight[i] > NEGLIGIBLE:
                share[i] = share_of_first(kind, form, policy, t + 1, scratch)
            i += n2 + 1
            if s1 < n1:
                swap_failure_for_success(alpha, beta, track, 0)

    return _compile(fill_shares, kind, form)


@functools.cache
def split_kernel() -> Any:
    """Return the kernel that turns shares and weights into probabilities of playing each arm: see kernels.split."""

    def split(size, weight, share):  # type: ignore[no-untyped-def]
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < size:
            if weight[i] > NEGLIGIBLE:
                share[i] *= weight[i]
                weight[i] -= share[i]
            else:
                share[i] = weight[i] = 0.0

    return _compile(split)


@functools.cache
def advance_kernel() -> Any:
    """Return the kernel that fills the weights of a layer from what was played in the one before: kernels.advance."""

    def advance(t, mirrored, first, second, weight):  # type: ignore[no-untyped-def]
        n1 = cuda.blockIdx.y
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        n2 = t - n1
        if place >= (n1 + 1) * (n2 + 1):
            return
        s1, s2 = place // (n2 + 1), place % (n2 + 1)
        total = 0.0
        if n1 > 0:
            at = offset(t - 1, n1 - 1) + s1 * (n2 + 1) + s2
            if s1 > 0:
                total += s1 / (n1 + 1.0) * first[at - n2 - 1]
            if s1 < n1:
                total += (n1 - s1) / (n1 + 1.0) * first[at]
        if n2 > 0:
            if mirrored and n1 == n2:
                at, column = offset(t - 1, n2 - 1) + s1 + s2 * (n1 + 1), n1 + 1
            else:
                at, column = offset(t - 1, n1) + s1 * n2 + s2, 1
            won = lost = 0.0
            if mirrored and n1 == n2:
                won = first[at - column] if s2 > 0 else 0.0
                lost = first[at] if s2 < n2 else 0.0
            else:
                won = second[at - column] if s2 > 0 else 0.0
                lost = second[at] if s2 < n2 else 0.0
            total += s2 / (n2 + 1.0) * won + (n2 - s2) / (n2 + 1.0) * lost
        weight[offset(t, n1) + place] = total

    return _compile(advance)
