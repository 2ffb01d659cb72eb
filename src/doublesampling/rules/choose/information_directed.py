"""Information-directed sampling: the least squared regret per information (Russo and Van Roy, 2014 and 2018).

Of the paper's two forms this is the variance-based one: the regret of an arm is E[R_best - R_a], its information
Var(E[R_a | which arm is the best]); for rewards between 0 and 1, twice that is at most the mutual information of the
other form. The mixture with the least (expected regret)^2 / information is played; two arms are enough for it. Our
choices: ratios within 1e-4 of each other count as equal and share fairly, and arms that are the best with a probability
below 1e-12 are left out. What is needed is E[reward of a, b is best] for every two arms: by quadrature, or from
posterior samples.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.draws import EXPLORATION, Address, uniform
from doublesampling.rules.optimal_arm.panels import add_panel, gather_upward, node_of, panel_densities
from doublesampling.rules.optimal_arm.regions import CENTRE, UPPER, Fineness, edge, panel_bottom, survey_arms
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

EXTRA_ROWS = 4  # of work space below one row per arm: how probably best, regret, information, chance of being played
_SAME = 1e-4  # ratios this near are equal: quadrature and samples do not tell them apart
_NEGLIGIBLE = 1e-12  # a probability that is as good as none


@rule
def best_of_draw(draws: FloatArray, m: int) -> int:
    """Return the best arm of one draw; tied arms take turns from draw to draw, so that none is favoured."""
    best, ties = 0, 1
    for a in range(1, draws.shape[1]):
        if draws[m, a] > draws[m, best]:
            best, ties = a, 1
        elif draws[m, a] == draws[m, best]:
            ties += 1
    if ties == 1:
        return best
    skip = m % ties
    for a in range(best, draws.shape[1]):
        if draws[m, a] == draws[m, best]:
            if skip == 0:
                return a
            skip -= 1
    return best


@rule
def tally_draws(draws: FloatArray, work: FloatArray) -> None:
    """Fill work (arm + 4, arm) from draws (sample, arm): E[reward of a, b is best] at (b, a), P(b is best) below."""
    samples, arms = draws.shape
    for i in range(arms + 1):
        for a in range(arms):
            work[i, a] = 0.0
    for m in range(samples):
        best = best_of_draw(draws, m)
        work[arms, best] += 1.0 / samples
        for a in range(arms):
            work[best, a] += draws[m, a] / samples


@rule
def _panel_tally(count: int, rewards: FloatArray, panel: FloatArray, partial: FloatArray, work: FloatArray) -> None:
    """Add one panel: each arm's chance to be the best at a node, times what every arm is expected to pay then."""
    add_panel(count, panel, work[count])
    for a in range(count):  # below a reward its mean is what is left of the mean, over what is left of the probability
        for j in range(rewards.size):
            below = panel[a, 1, j]
            partial[a, j] = min(partial[a, j] / below, rewards[j]) if below > _NEGLIGIBLE else 0.0
    for b in range(count):
        shares = panel[b, 2]
        for a in range(count):
            means = partial[a] if a != b else rewards
            total = 0.0
            for j in range(rewards.size):
                total += shares[j] * means[j]
            work[b, a] += total


@specialised(rule)
def _upper_edge_of_pay(shape: float, rate: float, fall: float) -> float:
    """Return where the density of an inverse Gamma law times its reward ends: that of a law of one shape less."""
    less = max(shape - 1.0, 0.05)
    centre = laws.centre(laws.INVERSE_GAMMA, less, rate)
    return min(centre + edge(laws.INVERSE_GAMMA, less, rate, 0.0, 1.0, fall), centre + 600.0)


@specialised(rule)
def _complete_tally(law: Constant, parameters: FloatArray, work: FloatArray) -> None:
    """Scale the probabilities to 1; where no panel entered an arm, the one of the highest mean is surely the best."""
    count = parameters.shape[0]
    total, best = 0.0, 0
    for a in range(count):
        total += work[count, a]
        if work[count + 1, a] > work[count + 1, best]:  # what is left of each mean: all of it
            best = a
    if total < 0.5:
        for a in range(count):
            work[best, a] = laws.mean(law, parameters[a, 0], parameters[a, 1])
        work[count, best] = total = 1.0
    for b in range(count):
        work[count, b] /= total
        for a in range(count):
            work[b, a] /= total


@specialised(rule)
def tally_exactly(
    law: Constant, parameters: FloatArray, fineness: Fineness, survey: FloatArray, panel: FloatArray,
    partial: FloatArray, work: FloatArray,
) -> None:  # fmt: skip
    """Fill work as tally_draws does, by quadrature.

    Work space: survey and panel as in quadrature.probability_optimal, partial (arm + 2, node).
    """
    count = parameters.shape[0]
    floor = survey_arms(law, parameters, fineness, survey)
    shift = 0.0
    if law == laws.STUDENT or law == laws.LOGISTIC:
        shift = parameters[0, 0] - survey[0, CENTRE]
    top = -math.inf
    for i in range(count + 1):
        for a in range(count):
            work[i, a] = 0.0
    for a in range(count):
        if law == laws.INVERSE_GAMMA:  # what it pays is found where its law times its reward is
            survey[a, UPPER] = _upper_edge_of_pay(parameters[a, 0], parameters[a, 1], fineness[0])
        top = max(top, survey[a, UPPER])
        work[count + 1, a] = laws.mean(law, parameters[a, 0], parameters[a, 1])  # what is left of it below top
    rewards, weighted = partial[count], partial[count + 1]
    while top > floor:
        bottom = panel_bottom(law, parameters, fineness[1], survey, top, floor)
        if not bottom < top:  # narrower than the spacing of floating-point numbers
            break
        half = 0.5 * (top - bottom)
        panel_densities(law, parameters, survey, top, half, panel)
        for j in range(rewards.size):
            rewards[j] = laws.reward_of_coordinate(law, shift + top + half * (node_of(j) - 1.0))
        for a in range(count):
            for j in range(rewards.size):
                weighted[j] = rewards[j] * panel[a, 0, j]
            work[count + 1, a] -= gather_upward(weighted, work[count + 1, a], partial[a])
        _panel_tally(count, rewards, panel, partial, work)
        top = bottom
    _complete_tally(law, parameters, work)


@rule
def fill_regret_and_information(work: FloatArray) -> None:
    """Fill the rows of regret and information of work; arms with a negligible chance to be the best are left out."""
    arms = work.shape[1]
    for a in range(arms):
        mean = regret = information = 0.0
        for b in range(arms):
            if work[arms, b] > _NEGLIGIBLE:
                mean += work[b, a]
                regret += max(work[b, b] - work[b, a], 0.0)
        for b in range(arms):
            if work[arms, b] > _NEGLIGIBLE:
                change = work[b, a] / work[arms, b] - mean
                information += work[arms, b] * change * change
        work[arms + 1, a], work[arms + 2, a] = regret, information


@inlined
def _ratio(regret: float, information: float) -> float:
    if regret <= 0.0:
        return 0.0
    return regret * regret / information if information > 0.0 else np.inf


@inlined
def _mixture(regret: FloatArray, information: FloatArray, a: int, b: int) -> tuple[float, float]:
    """Return the share of a in the best mixture of a and b, and its ratio; infinity where one arm alone is better."""
    slope, gain = regret[a] - regret[b], information[a] - information[b]
    if slope == 0.0 or gain == 0.0:
        return 0.0, math.inf
    share = regret[b] / slope - 2.0 * information[b] / gain  # where the ratio's derivative is zero
    if not 0.0 < share < 1.0:
        return 0.0, math.inf
    return share, _ratio(regret[b] + share * slope, information[b] + share * gain)


@rule
def fill_chances(regret: FloatArray, information: FloatArray, chances: FloatArray) -> None:
    """Fill the chances of the mixture, of two arms at most, with the least ratio; equally good ones share fairly.

    The ratio is a convex function of the chances, so what equally good ones share is as good as each.
    """
    alone = least = math.inf
    for a in range(regret.size):
        chances[a] = 0.0
        least = min(least, regret[a])
        alone = min(alone, _ratio(regret[a], information[a]))
    if math.isinf(alone):  # nothing is to be learned
        alone = 0.0
    mixed = alone * (1.0 - _SAME)
    for a in range(regret.size):
        for b in range(a):
            mixed = min(mixed, _mixture(regret, information, a, b)[1])
    total = 0.0
    if mixed < alone * (1.0 - _SAME):
        for a in range(regret.size):
            for b in range(a):
                share, ratio = _mixture(regret, information, a, b)
                if ratio <= mixed * (1.0 + _SAME):
                    chances[a] += share
                    chances[b] += 1.0 - share
                    total += 1.0
    else:
        for a in range(regret.size):
            if _ratio(regret[a], information[a]) <= alone * (1.0 + _SAME) or (alone == 0.0 and regret[a] <= least):
                chances[a] = 1.0
                total += 1.0
    for a in range(regret.size):
        chances[a] /= total


@rule
def directed_choice(address: Address, work: FloatArray) -> int:
    """Return the arm played, from tallied work; the chance of each arm is left in its last row."""
    fill_regret_and_information(work)
    arms = work.shape[1]
    chances = work[arms + 3]
    fill_chances(work[arms + 1], work[arms + 2], chances)
    left = uniform(address, EXPLORATION, np.uint64(0))
    arm = 0
    for a in range(arms):
        if chances[a] > 0.0:
            arm = a
            left -= chances[a]
            if left < 0.0:
                break
    return arm
