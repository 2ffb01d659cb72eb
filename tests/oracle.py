"""The slow twins: every rule once more, by NumPy, SciPy, mpmath or enumeration, as its definition says."""

import itertools
import math

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import stats

FloatArray = NDArray[np.float64]


def marginal_laws(kind: str, parameters: FloatArray) -> list:  # type: ignore[type-arg]
    """Frozen SciPy laws of the arms' expected rewards."""
    if kind == "beta":
        return [stats.beta(a, b) for a, b, _ in parameters]
    return [stats.norm(m, s) if np.isinf(v) else stats.t(v, m, s) for m, s, v in parameters]


def probability_optimal(kind: str, parameters: FloatArray) -> FloatArray:
    """p_a = integral of f_a prod_{b != a} F_b, by panels between quantiles of every arm, in SciPy."""
    laws = marginal_laws(kind, parameters)
    levels = np.concatenate([10.0 ** np.arange(-15, -1), np.linspace(0.02, 0.5, 9)])
    edges = np.unique(np.concatenate([np.concatenate([law.ppf(levels), law.isf(levels)]) for law in laws]))
    edges = edges[edges >= max(law.ppf(1e-15) for law in laws)]
    node, weight = np.polynomial.legendre.leggauss(60 if len(laws) < 10 else 8)  # many arms have many panels
    x = (0.5 * (edges[1:] + edges[:-1])[:, None] + 0.5 * np.diff(edges)[:, None] * node).ravel()
    w = (0.5 * np.diff(edges)[:, None] * weight).ravel()
    below = np.array([law.cdf(x) for law in laws])
    out = []
    for a, law in enumerate(laws):
        out.append(np.sum(w * law.pdf(x) * np.delete(below, a, axis=0).prod(axis=0)))
    return np.array(out)


def two_betas(a: int, b: int, c: int, d: int) -> float:
    """P(Beta(a, b) > Beta(c, d)) for whole numbers, exactly, as a finite sum in mpmath."""
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for i in range(a):
            total += mpmath.beta(c + i, b + d) / ((b + i) * mpmath.beta(1 + i, b) * mpmath.beta(c, d))
        return float(total)


def log_false_alarm(kind: str, p: FloatArray) -> mpmath.mpf:
    """log p_FA from its definition, with enough digits that nothing rounds. p must sum to 1 exactly as given."""
    with mpmath.workdps(400):
        exact = [mpmath.mpf(float(v)) for v in p]
        best = max(range(len(p)), key=lambda i: (exact[i], -i))
        rest = mpmath.fsum(v for i, v in enumerate(exact) if i != best)
        total = mpmath.mpf(0)
        for i, v in enumerate(exact):
            if i == best or v == 0:
                continue
            sd = mpmath.sqrt(v * (1 - v))
            if kind == "markov":
                total += v / exact[best]
            elif kind == "chebyshev":
                gap = exact[best] - v
                total += min(mpmath.mpf(1), sd**2 / (2 * gap**2)) if gap > 0 else 1
            else:

                def tail(x: mpmath.mpf) -> mpmath.mpf:
                    return mpmath.erfc(x / mpmath.sqrt(2)) / 2

                x = (exact[best] - v) / sd
                top = x + rest / sd
                total += (tail(x) - tail(top)) / (1 - tail(top) - tail(v / sd))
        return mpmath.log(total / (len(p) - 1)) if total > 0 else mpmath.mpf("-inf")


def published_candidates(p: FloatArray, cap: int) -> int:
    """N as the authors' code has it: SciPy's normal in double precision, floor of log10, nan and inf to the cap."""
    best = int(np.argmax(p))
    with np.errstate(all="ignore"):
        sd = np.sqrt(p * (1 - p))
        low, high, x = -p / sd, (1 - p) / sd, (p[best] - p) / sd
        alarm = 1 - (stats.norm.cdf(x) - stats.norm.cdf(low)) / (stats.norm.cdf(high) - stats.norm.cdf(low))
        count = np.log10(1 / np.delete(alarm, best).mean())
    return cap if not count < cap else max(1, math.floor(count))


def mode_propensities(number: int, p: FloatArray, ties: str) -> FloatArray:
    """P(arm is the mode of N draws from Cat(p)), by listing every outcome of the multinomial."""
    out = np.zeros(p.size)
    log_p = [math.log(v) if v > 0 else -math.inf for v in p]
    for bars in itertools.combinations(range(number + p.size - 1), p.size - 1):
        votes = np.diff([-1, *bars, number + p.size - 1]) - 1
        if any(v > 0 and q == 0 for v, q in zip(votes, p, strict=True)):
            continue
        log_mass = math.lgamma(number + 1) + sum(
            v * q - math.lgamma(v + 1) for v, q in zip(votes, log_p, strict=True) if v > 0
        )
        winners = np.flatnonzero(votes == votes.max())
        if ties == "first":
            winners = winners[:1]
        out[winners] += math.exp(log_mass) / winners.size
    return out


def nig_batch(
    mean: FloatArray, covariance: FloatArray, alpha: float, beta: float, contexts: FloatArray, rewards: FloatArray
) -> tuple[FloatArray, FloatArray, float, float]:
    """The paper's batch update of NIG(u, V, alpha, beta), as printed, with 60 digits."""
    with mpmath.workdps(60):
        u, x, y = mpmath.matrix(mean.tolist()), mpmath.matrix(contexts.tolist()), mpmath.matrix(rewards.tolist())
        precision = mpmath.inverse(mpmath.matrix(covariance.tolist()))
        new_precision = precision + x.T * x
        new_u = mpmath.lu_solve(new_precision, precision * u + x.T * y)
        gain = (y.T * y)[0] + (u.T * precision * u)[0] - (new_u.T * new_precision * new_u)[0]
        new_v = mpmath.inverse(new_precision)
        size = mean.size
        v = np.array([[float(new_v[i, j]) for j in range(size)] for i in range(size)])
        return np.array([float(w) for w in new_u]), v, alpha + len(rewards) / 2, float(mpmath.mpf(beta) + gain / 2)


def regret_and_information(draws: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each arm, from posterior draws (sample, arm): what it loses, and how its mean varies with the best arm."""
    best, mean = draws.argmax(axis=1), draws.mean(axis=0)
    regret = draws.max(axis=1).mean() - mean
    information = np.zeros(mean.size)
    for arm in np.unique(best):
        mine = best == arm
        information += mine.mean() * (draws[mine].mean(axis=0) - mean) ** 2
    return regret, information


def least_information_ratio(regret: NDArray[np.float64], information: NDArray[np.float64]) -> float:
    """The least squared regret per information over mixtures of two arms, on a fine grid."""
    q = np.linspace(0.0, 1.0, 2001)[:, None, None]
    mixed = q * regret[:, None] + (1 - q) * regret
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = mixed**2 / (q * information[:, None] + (1 - q) * information)
    return float(np.nanmin(ratio))
