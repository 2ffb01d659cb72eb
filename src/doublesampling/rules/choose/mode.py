"""Draw the candidates and play their mode (the paper's second sampling, second half)."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.choose.candidates import leader
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.draws import CANDIDATES, EXPLORATION, TIES, Address, multinomial_draw, uniform

FloatArray = NDArray[np.float64]

_SURE = 40.0  # exp(-40) is below 1e-17


@inlined
def draw_candidates(address: Address, number: int, p: FloatArray, votes: NDArray[np.int64]) -> None:
    """Fill the votes per arm of N candidates drawn from Cat(p_hat). With N = 1 this is Thompson sampling."""
    multinomial_draw(address, CANDIDATES, number, p, votes)


@inlined
def mode(values: NDArray[np.float64] | NDArray[np.int64], first_of_ties: bool, address: Address) -> int:
    """Return the arm of the largest value; of several, the first or a fair draw."""
    best = 0
    ties = 1
    for a in range(1, values.size):
        if values[a] > values[best]:
            best = a
            ties = 1
        elif values[a] == values[best]:
            ties += 1
    if first_of_ties or ties == 1:
        return best
    skip = int(uniform(address, TIES, np.uint64(0)) * ties)
    for a in range(best, values.size):
        if values[a] == values[best]:
            if skip == 0:
                return a
            skip -= 1
    return best


@inlined
def mode_of_candidates(
    address: Address, number: int, p: FloatArray, first_of_ties: bool, votes: NDArray[np.int64]
) -> int:
    """Return the arm that most of N candidates drawn from Cat(p) are; votes is left holding how many each arm got."""
    draw_candidates(address, number, p, votes)
    return mode(votes, first_of_ties, address)


@rule
def can_win(number: int, p: float, largest: float, arms: int) -> bool:
    """Whether an arm gets as many of N votes as the one with the largest share, but for a probability below 1e-17.

    By Chernoff's bound that probability is at most exp(-N (sqrt(largest) - sqrt(p))^2).
    """
    gap = math.sqrt(largest) - math.sqrt(p)
    return number * gap * gap <= _SURE + math.log(float(arms))


@rule
def sure_mode(number: int, p: FloatArray) -> int:
    """Return the arm that is the mode of N candidates but for a probability below 1e-17, or -1 where none is."""
    best, second = leader(p), 0.0
    for a in range(p.size):
        if a != best:
            second = max(second, p[a])
    return -1 if can_win(number, second, p[best], p.size) else best


@rule
def explore(arm: int, arms: int, epsilon: float, address: Address) -> int:
    """Return any arm with probability epsilon, else the one given."""
    if uniform(address, EXPLORATION, np.uint64(0)) >= epsilon:
        return arm
    return int(uniform(address, EXPLORATION, np.uint64(1)) * arms)
