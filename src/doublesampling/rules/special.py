"""Special functions that the rules need and Numba does not have: normal, beta and Student t, in log space."""

import math

import numpy as np

from doublesampling.rules.compiled import rule

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_FAR = 25.0  # beyond this many deviations erfc nears underflow and eight terms of the asymptotic series are exact
_NEVER = -math.inf
_LOG_HALF = math.log(0.5)
_MOST_SHAPE = 1e9  # of a Gamma variable whose tails are summed
MOST_TABLED = 1000  # the paper's number of samples
_LOG_FACTORIAL = np.array([math.lgamma(n + 1.0) for n in range(MOST_TABLED + 1)])
_STIRLING_OF_WHOLE = np.array(
    [0.0] + [math.lgamma(n) - (n - 0.5) * math.log(n) + n - _HALF_LOG_TWO_PI for n in range(1, 10)]
)


@rule
def log_difference(log_big: float, log_small: float) -> float:
    """Return log(e^big - e^small), for big >= small."""
    gap = log_small - log_big
    if gap >= 0.0 or math.isinf(log_big):
        return _NEVER
    # two forms of log(1 - e^gap), each exact where the other cancels
    return log_big + (math.log(-math.expm1(gap)) if gap > _LOG_HALF else math.log1p(-math.exp(gap)))


@rule
def log_normal_tail(x: float) -> float:
    """Return log P(Z > x) of a standard normal, for any x."""
    if x <= 0.0:
        return math.log1p(-0.5 * math.erfc(-x * _SQRT_HALF))
    if x <= _FAR:
        return math.log(0.5 * math.erfc(x * _SQRT_HALF))
    if math.isinf(x):
        return _NEVER
    term = total = 1.0
    inverse = 1.0 / (x * x)
    for k in range(1, 9):
        term *= -(2 * k - 1) * inverse
        total += term
    return -0.5 * x * x - math.log(x) - _HALF_LOG_TWO_PI + math.log(total)


@rule
def normal_quantile(p: float) -> float:
    """Return the standard normal quantile, to about 1e-16 relative (Wichura's algorithm AS 241)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        top = 2509.0809287301226727 * r + 33430.575583588128105
        top = ((top * r + 67265.770927008700853) * r + 45921.953931549871457) * r + 13731.693765509461125
        top = ((top * r + 1971.5909503065514427) * r + 133.14166789178437745) * r + 3.387132872796366608
        low = 5226.495278852545925 * r + 28729.085735721942674
        low = ((low * r + 39307.89580009271061) * r + 21213.794301586595867) * r + 5394.1960214247511077
        low = ((low * r + 687.1870074920579083) * r + 42.313330701600911252) * r + 1.0
        return q * top / low
    tail = p if q < 0.0 else 1.0 - p
    if tail <= 0.0:
        return -math.inf if q < 0.0 else math.inf
    r = math.sqrt(-math.log(tail))
    if r <= 5.0:
        r -= 1.6
        top = 7.7454501427834140764e-4 * r + 0.0227238449892691845833
        top = ((top * r + 0.24178072517745061177) * r + 1.27045825245236838258) * r + 3.64784832476320460504
        top = ((top * r + 5.7694972214606914055) * r + 4.6303378461565452959) * r + 1.42343711074968357734
        low = 1.05075007164441684324e-9 * r + 5.475938084995344946e-4
        low = ((low * r + 0.0151986665636164571966) * r + 0.14810397642748007459) * r + 0.68976733498510000455
        low = ((low * r + 1.6763848301838038494) * r + 2.05319162663775882187) * r + 1.0
    else:
        r -= 5.0
        top = 2.01033439929228813265e-7 * r + 2.71155556874348757815e-5
        top = ((top * r + 0.0012426609473880784386) * r + 0.026532189526576123093) * r + 0.29656057182850489123
        top = ((top * r + 1.7848265399172913358) * r + 5.4637849111641143699) * r + 6.6579046435011037772
        low = 2.04426310338993978564e-15 * r + 1.4215117583164458887e-7
        low = ((low * r + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525
        low = ((low * r + 0.13692988092273580531) * r + 0.59983220655588793769) * r + 1.0
    return -top / low if q < 0.0 else top / low


@rule
def stirling_error(x: float) -> float:
    """Return log Gamma(x) less Stirling's formula (x - 1/2) log x - x + log sqrt(2 pi): small and smooth."""
    if x < 10.0:
        if x == math.floor(x) and x >= 1.0:
            return _STIRLING_OF_WHOLE[int(x)]
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - _HALF_LOG_TWO_PI
    y = 1.0 / (x * x)
    series = 1.0 / 156.0 * y - 691.0 / 360360.0
    series = ((series * y + 1.0 / 1188.0) * y - 1.0 / 1680.0) * y + 1.0 / 1260.0
    return ((series * y - 1.0 / 360.0) * y + 1.0 / 12.0) / x


@rule
def deviance(x: float, mean: float) -> float:
    """Return x log(x / mean) + mean - x, without the cancellation when x is near the mean (Loader, 2000)."""
    if x <= 0.0:
        return mean
    gap = (x - mean) / (x + mean)
    if abs(gap) > 0.1:
        return x * math.log(x / mean) + mean - x
    total = gap * (x - mean)
    term = 2.0 * x * gap
    for k in range(1, 12):
        term *= gap * gap
        change = term / (2 * k + 1)
        total += change
        if abs(change) <= 1e-17 * abs(total):
            break
    return total


@rule
def log_binomial_pmf(k: int, n: int, p: float) -> float:
    """Return log P(K = k), K ~ Binomial(n, p) with 0 < p < 1, by Loader's saddle-point form: exact for large n."""
    if k == 0:
        return n * math.log1p(-p)
    if k == n:
        return n * math.log(p)
    miss = n - k
    if n <= MOST_TABLED:  # the log factorials are below 10^4: right to 1e-12
        ways = _LOG_FACTORIAL[int(n)] - _LOG_FACTORIAL[int(k)] - _LOG_FACTORIAL[int(miss)]
        return ways + k * math.log(p) + miss * math.log1p(-p)
    # Gamma(x + 1) = x Gamma(x) turns the factorials into the same Stirling error as everywhere else
    error = stirling_error(float(n)) - stirling_error(float(k)) - stirling_error(float(miss))
    distance = deviance(float(k), n * p) + deviance(float(miss), n * (1.0 - p))
    return error - distance + 0.5 * math.log(n / (k * float(miss))) - _HALF_LOG_TWO_PI


@rule
def log_poisson_pmf(k: int, mean: float) -> float:
    """Return log P(K = k), K ~ Poisson(mean), by Loader's saddle-point form."""
    if k == 0:
        return -mean
    return -deviance(float(k), mean) - stirling_error(float(k)) - 0.5 * math.log(k) - _HALF_LOG_TWO_PI


@rule
def log_beta_peak(alpha: float, beta: float) -> float:
    """Return the log of the largest density of the log odds of a Beta(alpha, beta) variable, at log(alpha / beta)."""
    error = stirling_error(alpha + beta) - stirling_error(alpha) - stirling_error(beta)
    return error + 0.5 * (math.log(alpha) - math.log1p(alpha / beta)) - _HALF_LOG_TWO_PI


@rule
def _log_mixture(share: float, rest: float, u: float) -> float:
    """Return log(rest + share e^u), rest + share = 1: exact for small u, and where rest is all that is left."""
    change = share * math.expm1(u)
    return math.log1p(change) if change > -0.5 else math.log(rest + share * math.exp(u))


@rule
def log_beta_fall(alpha: float, beta: float, u: float) -> float:
    """Return the log density of the log odds at a distance u from its peak less that at the peak (never above 0)."""
    total = alpha + beta
    hit, miss = alpha / total, beta / total
    if u < math.log(beta / alpha):  # x < 1/2: count from the side where the exponential stays small
        return -total * _log_mixture(hit, miss, u) + alpha * u
    return -total * _log_mixture(miss, hit, -u) - beta * u


@rule
def _beta_fraction(alpha: float, beta: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by its convergents; quick for x below the mean."""
    top_before, top = 1.0, 1.0
    low_before, low = 1.0, 1.0 - (alpha + beta) * x / (alpha + 1.0)
    value = top / low
    for m in range(1, 20000):
        middle = alpha + 2.0 * m
        even = m * (beta - m) * x / ((middle - 1.0) * middle)
        odd = -(alpha + m) * (alpha + beta + m) * x / (middle * (middle + 1.0))
        top_before, low_before = top + even * top_before, low + even * low_before
        top, low = top_before + odd * top, low_before + odd * low
        before, value = value, top / low
        if abs(value - before) <= 1e-16 * abs(value):
            break
        if not 1e-100 < abs(low) < 1e100:  # only the ratio matters: keep both in range
            scale = 1.0 / low
            top_before, top, low_before, low = top_before * scale, top * scale, low_before * scale, 1.0
    return value


@rule
def log_beta_tails_and_density(alpha: float, beta: float, log_peak: float, z: float) -> tuple[float, float, float]:
    """Return log P(X < x) and log P(X > x), X ~ Beta(alpha, beta), at log odds z of x, and the log density there.

    Both tails keep their digits. The density is that of the log odds; log_peak : its largest value, see log_beta_peak.
    """
    density = log_peak + log_beta_fall(alpha, beta, z - math.log(alpha / beta))
    x = 1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0
    if x * (alpha + beta + 2.0) < alpha + 1.0:
        lower = min(density - math.log(alpha) + math.log(_beta_fraction(alpha, beta, x)), 0.0)
        return lower, log_difference(0.0, lower), density
    miss = 1.0 / (1.0 + math.exp(z)) if z < 700.0 else 0.0
    upper = min(density - math.log(beta) + math.log(_beta_fraction(beta, alpha, miss)), 0.0)
    return log_difference(0.0, upper), upper, density


@rule
def beta_upper_quantile(alpha: float, beta: float, log_tail: float, start: float) -> float:
    """Return the log odds z with log P(X > x) = log_tail, X ~ Beta(alpha, beta), sought from a start (nan: the peak).

    The log odds of a beta variable have a log-concave density, so their log tail is concave: Newton's steps on it
    overshoot at most once and then approach from one side.
    """
    if log_tail >= 0.0:
        return -math.inf
    if math.isinf(log_tail):
        return math.inf
    log_peak = log_beta_peak(alpha, beta)
    z = start if math.isfinite(start) else math.log(alpha / beta)
    for _ in range(200):
        _, upper, density = log_beta_tails_and_density(alpha, beta, log_peak, z)
        gap = upper - log_tail
        inverse_hazard = math.exp(upper - density)
        step = gap * inverse_hazard
        if not abs(step) < 1e15:  # so far below that the tail no longer answers: start from the peak
            z = math.log(alpha / beta)
            continue
        if abs(gap) < 0.1:  # near the end Halley's correction, which cubes the error, saves a step
            slope = alpha - (alpha + beta) / (1.0 + math.exp(-z)) if z > -700.0 else alpha
            step /= 1.0 + 0.5 * gap * (1.0 + slope * inverse_hazard)
        z += step
        if abs(gap) < 1e-5:
            break
    return z


@rule
def student_upper_quantile(freedom: float, log_tail: float, start: float) -> float:
    """Return the t with log P(T > t) = log_tail for a Student t variable; infinite freedom gives the normal.

    start, where it is a number above zero, is a t near the answer.
    """
    if log_tail > _LOG_HALF:
        return -student_upper_quantile_above(freedom, log_difference(0.0, log_tail), -start)
    return student_upper_quantile_above(freedom, log_tail, start)


@rule
def student_upper_quantile_above(freedom: float, log_tail: float, start: float) -> float:
    """Return the same for tails of at most one half: T^2 / (freedom + T^2) is a beta variable."""
    if math.isinf(log_tail):
        return math.inf
    if freedom > 1e7:  # the first term of the expansion in 1 / freedom leaves 1e-12
        z = -normal_quantile(math.exp(log_tail))
        return z + (z * z * z + z) / (4.0 * freedom)
    root = math.sqrt(freedom)
    near = 2.0 * math.log(start / root) if start > 0.0 else math.nan
    return root * math.exp(0.5 * beta_upper_quantile(0.5, 0.5 * freedom, min(log_tail - _LOG_HALF, 0.0), near))


@rule
def logistic(z: float) -> float:
    """Return 1 / (1 + e^-z), for any z."""
    return 1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0


@rule
def log_gamma_peak(shape: float) -> float:
    """Return the log of the largest density of the logarithm of a Gamma(shape, 1) variable, at log(shape)."""
    return 0.5 * math.log(shape) - _HALF_LOG_TWO_PI - stirling_error(shape)


@rule
def log_gamma_fall(shape: float, u: float) -> float:
    """Return the log density of the logarithm at a distance u from its peak less that at the peak (never above 0)."""
    return shape * (u - math.expm1(u)) if u < 700.0 else _NEVER


@rule
def log_gamma_tails_and_density(shape: float, z: float) -> tuple[float, float, float]:
    """Return log P(X < e^z), log P(X > e^z) and the log density of log X, for X ~ Gamma(shape, 1)."""
    density = log_gamma_peak(shape) + log_gamma_fall(shape, z - math.log(shape))
    x = math.exp(z)
    if x < shape + 1.0:  # the series of the lower tail
        term = total = 1.0 / shape
        for k in range(1, 1000000):
            term *= x / (shape + k)
            total += term
            if term < 1e-17 * total:
                break
        lower = min(density + math.log(total), 0.0)
        return lower, log_difference(0.0, lower), density
    # the continued fraction of the upper tail, by its convergents
    top_before, top = 0.0, 1.0
    low_before, low = 1.0, x + 1.0 - shape
    value = top / low
    for k in range(1, 1000000):
        weight, shift = k * (shape - k), x + 2.0 * k + 1.0 - shape
        top_before, top = top, shift * top + weight * top_before
        low_before, low = low, shift * low + weight * low_before
        before, value = value, top / low
        if abs(value - before) <= 1e-16 * abs(value):
            break
        if not 1e-100 < abs(low) < 1e100:  # only the ratio matters: keep both in range
            scale = 1.0 / low
            top_before, top, low_before, low = top_before * scale, top * scale, low_before * scale, 1.0
    upper = min(density + math.log(value), 0.0)
    return log_difference(0.0, upper), upper, density


@rule
def log_gamma_quantile(shape: float, log_tail: float, start: float, side: float) -> float:
    """Return the z with log P(log X > z) = log_tail, X ~ Gamma(shape, 1); with side -1, log P(log X < z) = log_tail.

    The logarithm of a Gamma variable has a log-concave density, so both log tails are concave: Newton's steps overshoot
    at most once and then approach from one side.
    """
    if log_tail >= 0.0:
        return -side * math.inf
    if math.isinf(log_tail):
        return side * math.inf
    if shape > _MOST_SHAPE:  # series and fraction would need sqrt(shape) terms; Wilson and Hilferty's form leaves 1e-9
        z = -side * normal_quantile(math.exp(log_tail))
        return math.log(shape) + 3.0 * math.log1p((z - 1.0 / (3.0 * math.sqrt(shape))) / (3.0 * math.sqrt(shape)))
    # Chernoff's bound of the upper tail: beyond it the tail vanishes and would answer no step
    ceiling = math.log(shape + math.sqrt(-2.0 * shape * log_tail) - log_tail + 1.0) if side > 0.0 else math.inf
    z = start if math.isfinite(start) else math.log(shape)
    for _ in range(200):
        lower, upper, density = log_gamma_tails_and_density(shape, z)
        tail = upper if side > 0.0 else lower
        gap = tail - log_tail
        step = gap * math.exp(tail - density)
        if not abs(step) < 1e15:  # so far out that the tail no longer answers: start from the peak
            z = math.log(shape)
            continue
        z = min(z + side * step, ceiling)
        if abs(gap) < 1e-9:
            break
    return z
