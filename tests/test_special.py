"""Special functions against SciPy and mpmath."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special as scipy_special
from scipy import stats

from doublesampling.rules import laws, special
from tests.compiled_rules import CallableRules

laws = CallableRules(laws)  # type: ignore[assignment]
special = CallableRules(special)  # type: ignore[assignment]


@pytest.mark.parametrize("x", [-40.0, -8.0, -1.0, -1e-9, 0.0, 0.3, 5.0, 24.9, 25.1, 38.0, 1e3, 1e6])
def test_log_normal_tail(x):
    with mpmath.workdps(50):
        exact = mpmath.log(mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2)
    assert special.log_normal_tail(x) == pytest.approx(float(exact), rel=1e-13, abs=1e-300)


def test_log_normal_tail_of_infinity():
    assert special.log_normal_tail(math.inf) == -math.inf


@pytest.mark.parametrize("p", [1e-300, 2.0**-53, 1e-9, 0.02, 0.07, 0.3, 0.5, 0.77, 0.95, 1 - 1e-9, 1 - 2.0**-53])
def test_normal_quantile(p):
    assert special.normal_quantile(p) == pytest.approx(scipy_special.ndtri(p), rel=1e-15, abs=1e-15)


def test_normal_quantile_at_the_ends():
    assert special.normal_quantile(0.0) == -math.inf
    assert special.normal_quantile(1.0) == math.inf


@pytest.mark.parametrize("x", [1e-6, 0.3, 1.0, 9.99, 10.0, 123.4, 1e6, 1e12])
def test_stirling_error(x):
    with mpmath.workdps(60):
        y = mpmath.mpf(x)
        exact = mpmath.loggamma(y) - (y - 0.5) * mpmath.log(y) + y - mpmath.log(2 * mpmath.pi) / 2
    assert special.stirling_error(x) == pytest.approx(float(exact), rel=1e-13, abs=2e-15)


@pytest.mark.parametrize(
    ("k", "n", "p"),
    [(0, 5, 0.3), (5, 5, 0.3), (2, 5, 0.3), (300, 1000, 0.3), (1, 10**6, 1e-6), (499_000, 10**6, 0.5), (9, 10, 0.999)],
)
def test_log_binomial_pmf(k, n, p):
    with mpmath.workdps(60):
        q = mpmath.mpf(p)
        exact = mpmath.log(mpmath.binomial(n, k)) + k * mpmath.log(q) + (n - k) * mpmath.log(1 - q)
    assert special.log_binomial_pmf(k, n, p) == pytest.approx(float(exact), rel=1e-13, abs=1e-12)


@pytest.mark.parametrize(
    ("big", "small"), [(-1.0, -1.0 - 1e-12), (0.0, -1e-6), (0.0, -1e-3), (-5.0, -900.0), (-1.0, -math.inf)]
)
def test_log_difference(big, small):
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.exp(mpmath.mpf(big)) - mpmath.exp(mpmath.mpf(small)))
    assert special.log_difference(big, small) == pytest.approx(float(exact), rel=1e-12)


def test_log_difference_of_equals_is_nothing():
    assert special.log_difference(-2.0, -2.0) == -math.inf
    assert special.log_difference(-math.inf, -math.inf) == -math.inf


BETAS = [
    (1.0, 1.0),
    (0.5, 0.5),
    (1e-3, 1.0),
    (1e-6, 1e-6),
    (3.0, 700.0),
    (2.0, 1e6),
    (1e5, 1e6),
    (1e6, 1e6),
    (1e9, 3e9),
]


@pytest.mark.parametrize(("alpha", "beta"), BETAS)
def test_density_of_the_log_odds(alpha, beta):
    centre = math.log(alpha / beta)
    width = math.sqrt((alpha + beta) / (alpha * beta))
    for u in (-6.0, -1.0, -1e-3, 0.0, 0.2, 3.0, 7.0):
        with mpmath.workdps(60):
            a, b, z = mpmath.mpf(alpha), mpmath.mpf(beta), mpmath.log(mpmath.mpf(alpha) / beta) + mpmath.mpf(u * width)
            exact = -a * mpmath.log1p(mpmath.exp(-z)) - b * mpmath.log1p(mpmath.exp(z)) - mpmath.log(mpmath.beta(a, b))
        ours = special.log_beta_peak(alpha, beta) + special.log_beta_fall(alpha, beta, u * width)
        # terms as large as the root of the counts cancel: a few roundings of them are left
        assert ours == pytest.approx(float(exact), abs=1e-12 + 1e-15 * math.sqrt(alpha + beta)), (u, centre)


@pytest.mark.parametrize(("alpha", "beta"), [pair for pair in BETAS if max(pair) < 1e8])
def test_beta_tails_against_scipy(alpha, beta):
    law = stats.beta(alpha, beta)
    for level in (1e-6, 0.01, 0.3, 0.5, 0.8, 0.999):
        x = law.ppf(level)
        if not 1e-300 < x < 1 - 1e-12:
            continue
        log_peak = special.log_beta_peak(alpha, beta)
        lower, upper, _ = special.log_beta_tails_and_density(alpha, beta, log_peak, math.log(x) - math.log1p(-x))
        assert lower == pytest.approx(law.logcdf(x), abs=1e-9)
        assert upper == pytest.approx(law.logsf(x), abs=1e-9)


@pytest.mark.parametrize(("alpha", "beta"), [pair for pair in BETAS if min(pair) > 1e-6 and max(pair) < 1e8])
def test_beta_quantile_inverts_the_tail(alpha, beta):
    for tail in (0.9, 0.5, 0.1, 1e-3, 1e-9):
        z = special.beta_upper_quantile(alpha, beta, math.log(tail), math.nan)
        x = scipy_special.expit(z)
        if x > 1e-300:
            assert x == pytest.approx(scipy_special.betainccinv(alpha, beta, tail), rel=1e-10)


@pytest.mark.parametrize("freedom", [0.1, 1.0, 2.0, 5.0, 1e3, 2e6, math.inf])
def test_student_quantile(freedom):
    law = stats.norm if math.isinf(freedom) else stats.t(freedom)
    for tail in (0.999, 0.9, 0.5, 0.1, 1e-3, 1e-9):
        assert special.student_upper_quantile(freedom, math.log(tail), math.nan) == pytest.approx(
            law.isf(tail), rel=1e-9, abs=1e-12
        )


def test_quantiles_at_the_ends():
    assert special.beta_upper_quantile(2.0, 3.0, 0.0, math.nan) == -math.inf
    assert special.beta_upper_quantile(2.0, 3.0, -math.inf, math.nan) == math.inf
    assert special.student_upper_quantile(3.0, 0.0, math.nan) == -math.inf


@pytest.mark.parametrize("freedom", [0.1, 1.0, 7.0, 1e3, 1e8, math.inf])
def test_student_density(freedom):
    location, scale = 0.3, 2.5
    law = stats.norm(location, scale) if math.isinf(freedom) else stats.t(freedom, location, scale)
    peak = laws.log_peak(laws.STUDENT, location, scale, freedom)
    for x in (-20.0, 0.3, 1.0, 9.0):
        fall = laws.log_fall(laws.STUDENT, location, scale, freedom, x - location)
        assert peak + fall == pytest.approx(float(law.logpdf(x)), rel=1e-10, abs=1e-9)
    assert np.isfinite(peak)


@pytest.mark.parametrize("start", [-30.0, -2.0, 0.0, 1.0, 40.0, 1e6])
def test_quantiles_do_not_depend_on_where_the_search_starts(start):
    for alpha, beta in ((1.0, 1.0), (0.5, 30.0), (400.0, 900.0)):
        cold = special.beta_upper_quantile(alpha, beta, math.log(0.01), math.nan)
        assert special.beta_upper_quantile(alpha, beta, math.log(0.01), start) == pytest.approx(cold, rel=1e-12)
    cold = special.student_upper_quantile(7.0, math.log(0.01), math.nan)
    assert special.student_upper_quantile(7.0, math.log(0.01), start) == pytest.approx(cold, rel=1e-12)
