"""Information-directed sampling: the least squared regret per information (Russo and Van Roy, 2014), from samples.

Of M posterior samples of every arm's expected reward: the regret of an arm is what the best arm is expected to pay
more, its information the variance of its expected reward over which arm is the best. The mixture of two arms with the
least (expected regret)^2 / information is played.
"""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.draws import EXPLORATION, Address, uniform

FloatArray = NDArray[np.float64]

EXTRA_ROWS = 4  # of work space below one row per arm: how often best, mean, regret, information


@rule
def tally(draws: FloatArray, work: FloatArray) -> None:
    """Regret and information of every arm, in the last two rows of work, (arm + 4, arm)."""
    samples, arms = draws.shape
    for i in range(arms + EXTRA_ROWS):
        for a in range(arms):
            work[i, a] = 0.0
    top = 0.0
    for m in range(samples):
        best = 0
        for a in range(1, arms):
            if draws[m, a] > draws[m, best]:
                best = a
        work[arms, best] += 1.0
        top += draws[m, best]
        for a in range(arms):
            work[best, a] += draws[m, a]
            work[arms + 1, a] += draws[m, a] / samples
    for a in range(arms):
        mean = work[arms + 1, a]
        work[arms + 2, a] = max(top / samples - mean, 0.0)
        for b in range(arms):
            if work[arms, b] > 0.0:
                change = work[b, a] / work[arms, b] - mean
                work[arms + 3, a] += work[arms, b] / samples * change * change


@inlined
def _ratio(regret: float, information: float) -> float:
    if regret <= 0.0:
        return 0.0
    return regret * regret / information if information > 0.0 else np.inf


@rule
def least_ratio(regret: FloatArray, information: FloatArray) -> tuple[int, int, float]:
    """Two arms and the chance of the first: the mixture with the least ratio."""
    first = second = 0
    chance, least = 1.0, _ratio(regret[0], information[0])
    for a in range(1, regret.size):
        alone = _ratio(regret[a], information[a])
        if alone < least:
            first, second, chance, least = a, a, 1.0, alone
    for a in range(regret.size):
        for b in range(a):
            slope, gain = regret[a] - regret[b], information[a] - information[b]
            if slope == 0.0 or gain == 0.0:
                continue
            q = regret[b] / slope - 2.0 * information[b] / gain  # where the ratio's derivative is zero
            if 0.0 < q < 1.0:
                mixed = _ratio(regret[b] + q * slope, information[b] + q * gain)
                if mixed < least:
                    first, second, chance, least = a, b, q, mixed
    return first, second, chance


@rule
def directed_choice(draws: FloatArray, address: Address, work: FloatArray) -> tuple[int, int, int, float]:
    """The arm played, then the two arms of the mixture and the chance of the first."""
    tally(draws, work)
    arms = draws.shape[1]
    first, second, chance = least_ratio(work[arms + 2], work[arms + 3])
    arm = first if uniform(address, EXPLORATION, np.uint64(0)) < chance else second
    return arm, first, second, chance
