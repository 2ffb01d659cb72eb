"""What Python calls for policies that know the horizon: Gittins indices and their tables, relaxed means."""

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.cached import kept, kept_for
from doublesampling.rules.choose import gittins, relaxation
from doublesampling.rules.compiled import plain
from doublesampling.rules.entry_points import address_of

FloatArray = NDArray[np.float64]
WordArray = NDArray[np.uint64]

POINTS = 512  # rewards at which a table knows the advantage of an arm


@kept
def _fill_indices(counts: FloatArray, left: int, work: FloatArray, out: FloatArray) -> None:
    for a in range(out.size):
        out[a] = gittins.gittins_index(counts[a, 0], counts[a, 1], left, work[0], work[1])


def gittins_indices(counts: FloatArray, left: int) -> FloatArray:
    """Return the index of every arm, float array (arm), from alpha and beta (arm, 2) and the decisions left."""
    out = np.empty(counts.shape[0])
    _fill_indices(np.ascontiguousarray(counts), left, np.empty((2, left + 1)), out)
    return out


@kept
def _fill_table(
    alpha: float, beta: float, total: int, table: FloatArray, before: FloatArray, ahead: FloatArray
) -> None:
    gittins.fill_indices_of_total(alpha, beta, total, POINTS, table, before, ahead)


@functools.lru_cache(maxsize=4)
def _table(alpha: float, beta: float, horizon: int) -> FloatArray:
    """Return the indices of every state of an arm and every number of decisions left up to the horizon."""
    table = np.zeros(plain(gittins.table_place)(horizon + 1, 0, 0))

    def fill(total: int) -> None:
        space = np.empty((2, total * (total + 1) // 2))
        _fill_table(alpha, beta, total, table, space, np.empty(total + 1))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(horizon, 0, -1)))
    return table


@functools.lru_cache(maxsize=4)
def gittins_table(priors: tuple[tuple[float, float], ...], horizon: int) -> FloatArray:
    """Return the tables of several arms, float array (arm, place); one row where all priors are the same."""
    rows = priors[:1] if len(set(priors)) == 1 else priors
    return np.stack([_table(alpha, beta, horizon) for alpha, beta in rows])


@kept_for()
def _fill_relaxed(counts: FloatArray, horizon: float, words: WordArray, values: FloatArray) -> None:
    relaxation.fill_relaxed(counts, horizon, address_of(words), values)


def relaxed_means(counts: FloatArray, horizon: int, words: WordArray) -> FloatArray:
    """Return what IRS.FH compares, float array (arm), from alpha and beta (arm, 2)."""
    values = np.empty(counts.shape[0])
    _fill_relaxed(np.ascontiguousarray(counts), float(horizon), words, values)
    return values


@kept
def relaxed_share(alpha: float, beta: float, other_alpha: float, other_beta: float, more: int) -> float:
    """Return the probability with which IRS.FH plays the first of two arms; nan where it cannot be computed."""
    return relaxation.relaxed_share(alpha, beta, other_alpha, other_beta, more)
