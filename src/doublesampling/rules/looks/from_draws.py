"""The probabilities of a look from posterior draws, for beliefs whose law has no density of its own."""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import rule

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@rule
def fill_best(draws: FloatArray, which: IntArray, p: FloatArray) -> None:
    """How often each of some arms is the best of them; equal bests share a draw. draws (draw, arm), p (chosen arm)."""
    for i in range(p.size):
        p[i] = 0.0
    for m in range(draws.shape[0]):
        highest, ties = draws[m, which[0]], 0
        for i in range(p.size):
            highest = max(highest, draws[m, which[i]])
        for i in range(p.size):
            ties += draws[m, which[i]] == highest
        for i in range(p.size):
            if draws[m, which[i]] == highest:
                p[i] += 1.0 / ties
    for i in range(p.size):
        p[i] /= draws.shape[0]


@rule
def margin_from_draws(draws: FloatArray, which: IntArray, count: int, control: int, margin: float) -> float:
    """How often some arms lie within a margin, or none of them is above the control by more (control: -1 for none)."""
    found = 0
    for m in range(draws.shape[0]):
        lowest = highest = draws[m, which[0]]
        for i in range(count):
            lowest, highest = min(lowest, draws[m, which[i]]), max(highest, draws[m, which[i]])
        if control >= 0:
            lowest = draws[m, which[control]]
        found += highest - lowest <= margin
    return found / draws.shape[0]
