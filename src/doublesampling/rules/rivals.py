"""What the other policies look at: quantiles and posterior draws. (Thompson sampling is one candidate.)"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.belief import marginal_draw
from doublesampling.rules.compiled import rule
from doublesampling.rules.draws import POSTERIOR, Address

FloatArray = NDArray[np.float64]


@rule
def bayes_ucb_log_tail(time: float) -> float:
    """log of 1/t: Bayes-UCB looks at the quantile of level 1 - 1/t."""
    return -math.log(max(time, 1.0))


@rule
def sample_rank(samples: int, log_tail: float) -> int:
    """Which of the sorted samples is the quantile: the lowest with a share of at least 1 - tail at or below it."""
    # 1e-9 of a sample forgives the rounding of the level, so that 0.9 of 10 samples is the ninth
    return min(max(math.ceil(-samples * math.expm1(log_tail) - 1e-9) - 1, 0), samples - 1)


@rule
def fill_draws(family: int, parameters: FloatArray, address: Address, draws: FloatArray) -> None:
    """Posterior draws of every arm, float array (sample, arm), in the family's own coordinate."""
    count = parameters.shape[0]
    for m in range(draws.shape[0]):
        for a in range(count):
            index = np.uint64(m * count + a)
            first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
            draws[m, a] = marginal_draw(family, first, second, third, address, POSTERIOR, index)
