"""Policies a second time, from the formulas of their papers, sharing no code with the package.

Every outcome listed, every sum written out; mpmath and exact fractions where digits matter. Who uses it: see
tests/independent.py.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from tests.independent import best_of_whole_betas

FloatArray = NDArray[np.float64]

_DIGITS = 40


def log_false_alarm(p: Sequence[float]) -> mpmath.mpf:
    """log p_FA of the paper's eq. policy_n_samples by a Gaussian truncated to [0, 1], with 300 digits."""
    with mpmath.workdps(300):
        share = [mpmath.mpf(v) for v in p]
        share = [v / mpmath.fsum(share) for v in share]
        best = share.index(max(share))
        alarms = []
        for a, v in enumerate(share):
            if a == best or v == 0:
                continue
            sd = mpmath.sqrt(v * (1 - v))
            # upper tails of a standard normal law: at p*, at 1, and as much as lies below 0
            at_best, at_one, below = (mpmath.erfc(z / sd / mpmath.sqrt(2)) / 2 for z in (share[best] - v, 1 - v, v))
            alarms.append((at_best - at_one) / (1 - at_one - below))
        return mpmath.log(mpmath.fsum(alarms) / (len(p) - 1)) if alarms else mpmath.mpf("-inf")


def number_of_candidates(p: Sequence[float], cap: int = 1000) -> int:
    """N = floor(log10(1 / p_FA)), at least 1 and at most the cap."""
    count = -log_false_alarm(p) / mpmath.log(10)
    return cap if count >= cap else max(1, int(mpmath.floor(count)))


def number_by_challenger(
    p: Sequence[float], precisions: Sequence[float], decisions: float, *, anytime: bool = False, cap: int = 1000
) -> int:
    """N of docs/explanation/horizon.md, with 50 digits: until a horizon, or from the decisions made so far."""
    kappa, s, k, q, g = (26, 13, "4.5", "0.55", "0.87") if anytime else (26, 100, 3, 0, "0.65")
    with mpmath.workdps(50):
        best = max(range(len(p)), key=lambda a: p[a])
        doubts = [
            mpmath.mpf(v) * (mpmath.mpf(precisions[best]) / precisions[a]) ** mpmath.mpf(g)
            for a, v in enumerate(p)
            if a != best
        ]
        if max(doubts) == 0:
            return cap
        sure = -mpmath.log10(max(doubts))
        decades = mpmath.log10(mpmath.mpf(kappa) * (len(p) - 1) ** 2 / decisions) + mpmath.mpf(k) * sure
        decades += mpmath.mpf(q) * sure**2 if sure > 0 else 0
        return int(min(max(1 + mpmath.floor(s * decades), 1), cap))


def number_by_doubt(p: Sequence[float], remaining: float, cap: int = 1000) -> int:
    """N = 1 + floor(4 log10(300 / (decisions left * (1 - p*)))), at least 1 and at most the cap."""
    doubt = math.fsum(p) - max(p)
    return cap if doubt == 0 else min(max(1 + math.floor(4 * math.log10(300 / (remaining * doubt))), 1), cap)


def outcomes(trials: int, arms: int) -> NDArray[np.int64]:
    """Every way in which so many trials fall to so many arms, int array (outcome, arm)."""
    rows, left = np.zeros((1, 0), dtype=np.int64), np.array([trials])
    for _ in range(arms - 1):
        ways = left + 1
        before = np.repeat(np.arange(left.size), ways)
        counts = np.arange(before.size) - np.repeat(np.cumsum(ways) - ways, ways)
        rows, left = np.column_stack([rows[before], counts]), left[before] - counts
    return np.column_stack([rows, left])


def log_multinomial(counts: NDArray[np.int64], p: Sequence[float]) -> FloatArray:
    """The log probability of every outcome, from factorials."""
    trials = int(counts[0].sum())
    log_factorial = np.array([math.lgamma(k + 1.0) for k in range(trials + 1)])
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = np.where(counts > 0, counts * np.log(np.asarray(p)), 0.0)
    return np.asarray(log_factorial[trials] - log_factorial[counts].sum(axis=1) + log_p.sum(axis=1))


def mode_law(number: int, p: Sequence[float], ties: str = "random") -> FloatArray:
    """P(arm is the mode of so many candidates drawn from Cat(p)), from every outcome."""
    votes = outcomes(number, len(p))
    chance = np.exp(log_multinomial(votes, p))
    winners = votes == votes.max(axis=1, keepdims=True)
    if ties == "first":
        winners &= np.cumsum(winners, axis=1) == 1
    return np.asarray((chance[:, None] * winners / winners.sum(axis=1, keepdims=True)).sum(axis=0))


def _log_poisson(count: int, mean: float) -> float:
    return count * math.log(mean) - mean - math.lgamma(count + 1.0)


def mode_law_of_many(number: int, p: Sequence[float], arm: int) -> float:
    """The same for one of many arms with fair ties: votes of the others counted one arm after another.

    Votes are independent Poisson counts of means N p, given that they sum to N.
    """
    total = 0.0
    for k in range(1, number + 1):
        table = np.zeros((len(p), number - k + 1))  # (ties with k votes, votes so far)
        table[0, 0] = 1.0
        for other, share in enumerate(p):
            if other == arm:
                continue
            new = np.zeros_like(table)
            for j in range(min(k, number - k) + 1):
                term, rest = math.exp(_log_poisson(j, number * share)), table.shape[1] - j
                if j < k:
                    new[:, j:] += term * table[:, :rest]
                else:
                    new[1:, j:] += term * table[:-1, :rest]
            table = new
        fair = sum(table[ties, -1] / (ties + 1) for ties in range(len(p)))
        total += fair * math.exp(_log_poisson(k, number * p[arm]) - _log_poisson(number, number))
    return float(total)


def double_sampling_law(p: Sequence[float], samples: int, ties: str = "random") -> FloatArray:
    """P(arm is played) over both samplings: M posterior samples, then the mode of N candidates."""
    counts = outcomes(samples, len(p))
    out = np.zeros(len(p))
    for row, log_chance in zip(counts.tolist(), log_multinomial(counts, p).tolist(), strict=True):
        estimate = [k / samples for k in row]
        if max(row) == samples:
            out += math.exp(log_chance) * np.array(estimate)
        else:
            out += math.exp(log_chance) * mode_law(number_of_candidates(estimate), estimate, ties)
    return out


def top_two_law(p: Sequence[float], share: float) -> FloatArray:
    """Russo (2016), TTTS: the best arm of a draw, or with probability 1 - share that of the next draw with another."""
    return np.array([
        share * p[i] + (1 - share) * math.fsum(p[j] * p[i] / (1 - p[j]) for j in range(len(p)) if j != i)
        for i in range(len(p))
    ])  # fmt: skip


def bernoulli_divergence(p: float, q: float) -> mpmath.mpf:
    """KL(Bernoulli(p), Bernoulli(q))."""
    with mpmath.workdps(_DIGITS):
        x, y = mpmath.mpf(p), mpmath.mpf(q)
        first = x * mpmath.log(x / y) if x > 0 else mpmath.mpf(0)
        return first + ((1 - x) * mpmath.log((1 - x) / (1 - y)) if x < 1 else 0)


def kl_ucb_index(wins: int, count: int, time: int, c: float = 0.0) -> float:
    """Garivier and Cappe (2011): max{q : N d(S / N, q) <= log t + c log log t}, by bisection."""
    mean = wins / count
    reach = math.log(time) + (c * math.log(math.log(time)) if c else 0.0)
    low, high = mean, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = middle < 1.0 and count * bernoulli_divergence(mean, middle) <= reach
        low, high = (middle, high) if inside else (low, middle)
    return low


def imed_index(wins: int, count: int, best_mean: float) -> float:
    """Honda and Takemura (2015): N_i D(mean_i, best mean) + log N_i; the least is played."""
    return float(count * bernoulli_divergence(wins / count, best_mean)) + math.log(count)


def regret_and_information(arms: Sequence[tuple[int, int]]) -> tuple[FloatArray, FloatArray]:
    """Delta(a) and v(a) of variance-based information-directed sampling, of whole Beta arms, from exact fractions.

    Russo and Van Roy (2014): Delta(a) = E[R_{A*} - R_a], v(a) = Var(E[R_a | A*]). A Beta density times its reward is
    its mean times the density after one more success, so E[R_a; A* = b] is the mean of a times a probability.
    """
    size = len(arms)
    best = best_of_whole_betas(arms)
    joint = np.empty((size, size), dtype=object)  # E[R_a; A* = b] at (a, b)
    for a, (wins, losses) in enumerate(arms):
        grown = [*arms[:a], (wins + 1, losses), *arms[a + 1 :]]
        for b, p in enumerate(best_of_whole_betas(grown)):
            joint[a, b] = Fraction(wins, wins + losses) * p
    means = [Fraction(wins, wins + losses) for wins, losses in arms]
    top = sum(joint[b, b] for b in range(size))
    regret = [float(top - mean) for mean in means]
    information = [
        float(sum(best[b] * (joint[a, b] / best[b] - means[a]) ** 2 for b in range(size))) for a in range(size)
    ]
    return np.array(regret), np.array(information)


def least_information_ratio(regret: FloatArray, information: FloatArray) -> float:
    """The least (regret . pi)^2 / (information . pi) over every distribution pi on the arms, by SciPy."""
    size = regret.size

    def ratio(x: FloatArray) -> float:
        pi = np.abs(x) / np.abs(x).sum()
        return float((regret @ pi) ** 2 / (information @ pi))

    starts = [*np.eye(size), *(np.eye(size)[a] + np.eye(size)[b] for a in range(size) for b in range(a)), np.ones(size)]
    found = [optimize.minimize(ratio, s + 1e-9, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14}).fun
             for s in starts]  # fmt: skip
    return float(min(found))
