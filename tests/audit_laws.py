"""Measure counts of candidates, quantiles, draws, definitions and logistic posteriors, for benchmarks/audit.py."""

import math
from collections.abc import Iterator
from typing import Any

import mpmath
import numba
import numpy as np
from numpy.typing import NDArray
from scipy import special as scipy_special
from scipy import stats

import doublesampling as ds
from doublesampling.rules import draws as drawing
from doublesampling.rules import entry_points, special, tallies
from doublesampling.rules import laws as families
from doublesampling.rules.choose import baselines, information_directed
from doublesampling.rules.choose import candidates as counting
from tests import independent as reference
from tests import independent_policies as policies
from tests.compiled_rules import CallableRules

drawing = CallableRules(drawing)  # type: ignore[assignment]
special = CallableRules(special)  # type: ignore[assignment]
families = CallableRules(families)  # type: ignore[assignment]
baselines = CallableRules(baselines)  # type: ignore[assignment]
information_directed = CallableRules(information_directed)  # type: ignore[assignment]
counting = CallableRules(counting)  # type: ignore[assignment]

FloatArray = NDArray[np.float64]
Row = tuple[str, str, str, str]
LOGISTIC_ERRORS = ("P(best)", "mean", "2.5 and 97.5 % quantile", "location in deviations", "deviation")


def candidates(scale: int) -> Iterator[Row]:
    """p_FA, N and the propensities of the mode."""
    rng = np.random.default_rng(3)
    worst, differ, looked = 0.0, 0, 6 * scale
    for i in range(looked):
        shares = 10.0 ** -rng.uniform(0, [1, 3, 8, 14][i % 4], int(rng.integers(2, 7)))
        p = shares / shares.sum()
        wanted = policies.log_false_alarm(p.tolist())
        worst = max(worst, float(abs(counting.log_false_alarm(counting.TRUNCATED_GAUSSIAN, p) / wanted - 1)))
        differ += ds.DoubleSampling().number_of_candidates(p) != policies.number_of_candidates(p.tolist())
        left = 10.0 ** rng.uniform(0, 6)
        differ += counting.number_by_doubt(left, p, 1000) != policies.number_by_doubt(p.tolist(), left)
        known = 10.0 ** rng.uniform(0, 3, p.size)
        for anytime, weights in ((False, counting.UNTIL_HORIZON), (True, counting.AT_ANY_TIME)):
            wanted_number = policies.number_by_challenger(p.tolist(), known.tolist(), left, anytime=anytime)
            differ += counting.number_by_challenger(left, p, known, weights, 1000) != wanted_number
    yield "log p_FA, relative", f"{looked} p of 2 to 6 arms, down to 1e-14", "mpmath, 300 digits", f"{worst:.0e}"
    yield "N, all four counts", "the same", "mpmath, 300 digits", f"{differ} differences"
    worst = 0.0
    for number in (1, 2, 7, 40, 300, 1000):
        for ties in ("random", "first"):
            for _ in range(max(scale // 20, 1)):
                p = rng.dirichlet(rng.choice([0.2, 1.0, 50.0], 3))
                found = entry_points.mode_propensities(number, p, ties == "first")
                worst = max(worst, float(np.abs(found - policies.mode_law(number, p.tolist(), ties)).max()))
    for number, arms in ((60, 20), (100, 10), (200, 8)):
        p = rng.dirichlet(np.full(arms, 20.0))
        found = entry_points.mode_propensities(number, p, False)
        for arm in (0, arms - 1):
            worst = max(worst, abs(found[arm] - policies.mode_law_of_many(number, p.tolist(), arm)))
    yield "propensity of the mode, absolute", "N to 1000, 3 to 20 arms", "every outcome", f"{worst:.0e}"


def tail_of_law(law: reference.Law, point: float, side: float) -> float:
    """The probability above (side 1) or below (side -1) a point, by 40-digit quadrature outwards from it."""
    with mpmath.workdps(40):
        reach = [law.distance(level, side) for level in (1.0, 3.0, 10.0, 30.0, 80.0)]
        ends = sorted({law.peak + side * d for d in reach if side * (law.peak + side * d - point) > 0} | {point})
        return float(mpmath.quad(lambda z: mpmath.exp(law.fine(mpmath.mpf(z))), ends))


def quantiles(scale: int) -> Iterator[Row]:
    """Upper quantiles that Bayes-UCB looks at; errors in deviations of a normal law at that tail."""

    def in_deviations(found: float, tail: float) -> float:
        return float(abs(found - tail) / stats.norm.pdf(stats.norm.isf(tail)))

    tails = (0.5, 0.1, 1e-3, 1e-8, 1e-12)
    for name, laws in (
        ("Beta", [(families.BETA, a, b, 0.0) for a in (0.3, 2.0, 1e4, 1e8) for b in (0.5, 7.0, 1e6)]),
        ("Beta of 1e12", [(families.BETA, a, 1e12, 0.0) for a in (1.0, 30.0, 1e12)]),
        ("Gamma", [(families.GAMMA, a, 1.0, 0.0) for a in (0.3, 1.0, 1e3, 1e8, 0.9e9, 1.1e9, 1e12)]),
        ("inverse Gamma", [(families.INVERSE_GAMMA, a, 1.0, 0.0) for a in (1.1, 1e3, 1e8, 0.9e9, 1.1e9, 1e12)]),
        ("Student", [(families.STUDENT, 0.0, 1.0, v) for v in (2.0, 3.7, 100.0, 1e5, 0.9e7, 1.1e7, 1e12, math.inf)]),
    ):
        worst = 0.0
        for family, first, second, third in laws:
            law = _law(family, first, second, third)
            for tail in tails:
                point = families.upper_quantile(family, first, second, third, math.log(tail), math.nan)[0]
                worst = max(worst, in_deviations(tail_of_law(law, point, 1.0), tail))
        looked = f"parameters up to {max(x for row in laws for x in row[1:] if math.isfinite(x)):.0e}"
        yield f"upper quantile, {name}", f"{looked}, tails 0.5 to 1e-12", "mpmath, 40 digits", f"{worst:.0e} deviations"
    worst = 0.0
    for x in np.concatenate([np.linspace(-8.0, 40.0, 97), np.geomspace(24.0, 1e4, 50)]).tolist():
        with mpmath.workdps(60):
            wanted = mpmath.log(mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2)
        worst = max(worst, float(abs(special.log_normal_tail(x) / wanted - 1)))
    yield "log normal tail, relative", "-8 to 1e4 deviations", "mpmath, 60 digits", f"{worst:.0e}"


def _law(family: int, first: float, second: float, third: float) -> reference.Law:
    if family == families.BETA:
        return reference.beta_law(first, second)
    if family == families.STUDENT:
        return reference.student_law(first, second, third)
    return reference.gamma_law(first, second, inverse=family == families.INVERSE_GAMMA)


def _fill_multinomials(trials: int, p: FloatArray, out: NDArray[np.int64]) -> None:
    for i in range(out.shape[0]):
        address = (np.uint64(i), np.uint64(0), np.uint64(0), np.uint64(1))
        drawing.multinomial_draw(address, drawing.OPTIMALITY, trials, p, out[i])


def _fill_marginals(family: int, first: float, second: float, third: float, out: FloatArray) -> None:
    for i in range(out.size):
        address = (np.uint64(i), np.uint64(0), np.uint64(0), np.uint64(1))
        out[i] = families.draw(family, first, second, third, address, drawing.POSTERIOR, np.uint64(0))


_multinomials: Any = numba.njit(_fill_multinomials)
_marginals: Any = numba.njit(_fill_marginals)


def _log_gamma_cdf(shape: float) -> Any:
    """Of the logarithm of a Gamma variable, also where the variable itself underflows."""

    def cdf(z: FloatArray) -> FloatArray:
        small = np.exp(np.minimum(shape * z - math.lgamma(shape + 1.0), 0.0))
        return np.where(z < -500.0, small, scipy_special.gammainc(shape, np.exp(np.clip(z, -500.0, 700.0))))

    return cdf


def draws(scale: int) -> Iterator[Row]:
    """The laws of random draws, by tests whose smallest p-value is shown."""
    count, smallest = 1000 * scale, 1.0
    for shape in (1e-6, 1e-3, 0.05, 0.999, 1.0, 1.5, 1e3, 1e6):
        out = np.empty(count)
        _marginals(families.GAMMA, shape, 1.0, 0.0, out)
        smallest = min(smallest, float(stats.kstest(out, _log_gamma_cdf(shape)).pvalue))
    for a, b in ((1e-6, 1e-6), (1e-3, 1e3), (0.5, 0.5), (3.0, 1e6)):
        _marginals(families.BETA, a, b, 0.0, out)
        above = np.count_nonzero(out > math.log(a / b))
        chance = float(scipy_special.betaincc(a, b, a / (a + b)))
        smallest = min(smallest, float(stats.binomtest(above, count, chance).pvalue))
    for freedom in (0.1, 1.0, 3.0, 1e3):
        _marginals(families.STUDENT, 0.0, 1.0, freedom, out)
        smallest = min(smallest, float(stats.kstest(out, stats.t(freedom).cdf).pvalue))
    looked = f"Gamma and Beta shapes from 1e-6, freedom from 0.1, {count} draws"
    yield "posterior draws", looked, "SciPy, Kolmogorov-Smirnov", f"smallest p-value {smallest:.1g}"
    smallest = 1.0
    for trials, p in (
        (1, (0.2, 0.3, 0.5)), (3, (0.2, 0.3, 0.5)), (1000, (1e-6, 1e-3, 0.998999)), (1000, (0.998999, 1e-3, 1e-6)),
        (10**6, (0.3, 0.3, 0.4)), (10**12, (1e-12, 2e-12, 1 - 3e-12)),
    ):  # fmt: skip
        found = np.zeros((count, 3), dtype=np.int64)
        _multinomials(trials, np.array(p), found)
        for arm, share in enumerate(p):
            law = stats.binom(trials, share)
            middle = law.median()
            low, high = np.count_nonzero(found[:, arm] < middle), np.count_nonzero(found[:, arm] > middle)
            for hits, chance in ((low, law.cdf(middle - 1)), (high, law.sf(middle))):
                smallest = min(smallest, float(stats.binomtest(hits, count, float(chance)).pvalue))
    yield "multinomial draws", f"M to 1e12, p from 1e-12, {count} draws", "SciPy", f"smallest p-value {smallest:.1g}"


def definitions(scale: int) -> Iterator[Row]:
    """Indices and laws of the other policies, from their papers."""
    rng = np.random.default_rng(4)
    kl = imed = 0.0
    for _ in range(4 * scale):
        count = int(10 ** rng.uniform(0, 6))
        wins, when = int(rng.integers(0, count + 1)), count + int(10 ** rng.uniform(0, 6))
        found = baselines.kl_ucb_index(wins / count, float(count), float(when))
        kl = max(kl, abs(found - policies.kl_ucb_index(wins, count, when)))
        best = rng.uniform(wins / count, 1.0)
        wanted = policies.imed_index(wins, count, best)
        imed = max(imed, abs(-baselines.imed_index(wins / count, float(count), best) - wanted) / max(wanted, 1.0))
    yield "KL-UCB index (c = 0)", "1 to 1e6 plays", "bisection in mpmath", f"{kl:.0e}"
    yield "IMED index, relative", "1 to 1e6 plays", "mpmath", f"{imed:.0e} (rounded to 1e-9 on purpose)"
    two = regrets = informations = ratios = 0.0
    for _ in range(scale):
        size = int(rng.integers(2, 6))
        arms = [(int(a), int(b)) for a, b in rng.integers(1, 12, (size, 2))]
        p = [float(v) for v in reference.best_of_whole_betas(arms)]
        wanted_two = policies.top_two_law(p, 0.3)
        two = max(two, float(np.abs(ds.TopTwo(0.3)._propensities(np.array(p)) - wanted_two).max()))
        work = tallies.tally_exactly(families.BETA, np.array([[a, b, 0.0] for a, b in arms]))
        information_directed.fill_regret_and_information(work)
        regret, information = policies.regret_and_information(arms)
        regrets = max(regrets, float(np.abs(work[size + 1] / regret - 1.0).max()))
        informations = max(informations, float(np.abs(work[size + 2] / information - 1.0).max()))
        chances = np.empty(size)
        information_directed.fill_chances(work[size + 1], work[size + 2], chances)
        least = policies.least_information_ratio(regret, information)
        ratios = max(ratios, float((chances @ regret) ** 2 / (chances @ information)) / least - 1.0)
    yield "top-two propensities", f"{scale} states of 2 to 5 Beta arms", "Russo (2016)", f"{two:.0e}"
    cells = f"regret {regrets:.0e}, information {informations:.0e}, ratio above the least {max(ratios, 0.0):.0e}"
    yield "information-directed sampling, relative", "the same", "exact fractions, SciPy's minimizer", cells


def logistic_errors(seed: int, rows: int, size: int, deviation: float) -> tuple[float, ...]:
    """How far Laplace's method is off for two arms of so many rewards each, see LOGISTIC_ERRORS."""
    rng = np.random.default_rng([seed, rows, size])
    belief = ds.Logistic(arms=2, dimension=size, covariance=deviation**2)
    weights = rng.normal(0.0, deviation, (2, size))
    x, here = rng.normal(size=(2, rows, size)), rng.normal(size=size)
    if size == 2:
        x[:, :, 0] = here[0] = 1.0  # an intercept
    rewards = (rng.random((2, rows)) < scipy_special.expit(np.einsum("and,ad->an", x, weights))).astype(float)
    state = belief.update_batch(belief.prior(), np.repeat([0, 1], rows), rewards.ravel(), x.reshape(-1, size))
    laws = belief.marginals(state, here)
    points = 401 if size == 1 else 241
    exact = [reference.logistic_posterior(x[a], rewards[a], here, deviation=deviation, points=points) for a in (0, 1)]
    errors = np.zeros((2, 4))
    for a, (z, density) in enumerate(exact):
        mass = density * (z[1] - z[0])
        mean = float(mass @ z)
        spread = math.sqrt(float(mass @ (z - mean) ** 2))
        ends = np.interp([0.025, 0.975], np.cumsum(mass) - 0.5 * mass, z)
        errors[a] = (
            abs(laws.mean[a] - mass @ scipy_special.expit(z)),
            np.abs(laws.quantile([0.025, 0.975])[:, a] - scipy_special.expit(ends)).max(),
            abs(laws.parameters[a, 0] - mean) / spread,
            abs(laws.parameters[a, 1] / spread - 1.0),
        )
    best = abs(float(laws.probability_optimal[0]) - reference.logistic_best_of_two(*exact))
    return (best, *errors.max(axis=0).tolist())
