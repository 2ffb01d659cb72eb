"""Random numbers as addresses: the same address always holds the same draw.

A draw is f(seed, bandit, realization, time, purpose, index), by the counter-based generator Philox 4x64 with ten
rounds (Salmon et al., 2011): the key is (seed, bandit), the counter (index, purpose, time, realization). Nothing is
stored between draws, so threads, chunks and machines cannot disturb each other.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.special import log_binomial_pmf, log_poisson_pmf, normal_quantile

Address = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
"""(seed, bandit, realization, time), each an unsigned 64-bit integer."""

# What a draw is for. Numbers are part of the address: changing one changes every result ever drawn.
CONTEXT = np.uint64(1)
REWARD = np.uint64(2)
OPTIMALITY = np.uint64(3)  # sampling one
CANDIDATES = np.uint64(4)  # sampling two
TIES = np.uint64(5)
EXPLORATION = np.uint64(6)
POSTERIOR = np.uint64(7)
SHARES = np.uint64(8)  # of categories
ALLOCATION = np.uint64(9)  # an arm from its share, and slots of a block
DELAY = np.uint64(10)  # of an outcome
DROPOUT = np.uint64(11)

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)
_UNUSED_BITS = np.uint64(12)
_ATTEMPTS = np.uint64(1 << 16)
_STEP = 2.0**-52


@rule
def _multiply_high(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of a 128-bit product, from 32-bit halves (no 128-bit type exists in Numba)."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF_BITS
    b_low, b_high = b & _LOW_HALF, b >> _HALF_BITS
    middle = a_high * b_low + ((a_low * b_low) >> _HALF_BITS)
    carry = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _HALF_BITS) + (carry >> _HALF_BITS)


@rule
def philox(
    c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64, k0: np.uint64, k1: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return four random words of Philox 4x64-10 from a counter (c0..c3) and a key (k0, k1)."""
    for _ in range(10):
        high_0, low_0 = _multiply_high(_MULTIPLIER_0, c0), _MULTIPLIER_0 * c0
        high_1, low_1 = _multiply_high(_MULTIPLIER_1, c2), _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0 = k0 + _WEYL_0
        k1 = k1 + _WEYL_1
    return c0, c1, c2, c3


@rule
def _inside(word: np.uint64) -> float:
    """Return a uniform strictly inside (0, 1): the middle of one of 2**52 equal cells, so that log never meets zero."""
    return (float(word >> _UNUSED_BITS) + 0.5) * _STEP


@rule
def uniforms(address: Address, purpose: np.uint64, index: np.uint64) -> tuple[float, float, float, float]:
    """Return the four independent uniforms strictly inside (0, 1) of one address."""
    seed, bandit, realization, time = address
    w0, w1, w2, w3 = philox(index, purpose, time, realization, seed, bandit)
    return _inside(w0), _inside(w1), _inside(w2), _inside(w3)


@rule
def uniform(address: Address, purpose: np.uint64, index: np.uint64) -> float:
    """Return the first of the four uniforms of an address."""
    return uniforms(address, purpose, index)[0]


@rule
def stream(address: Address, purpose: np.uint64, index: np.uint64) -> np.uint64:
    """Return the first word of a stream: for loops that draw thousands of numbers at one address, by next_uniform."""
    seed, bandit, realization, time = address
    return philox(index, purpose, time, realization, seed, bandit)[0]


@inlined
def next_uniform(word: np.uint64) -> tuple[np.uint64, float]:
    """Return the next word of a stream and its uniform, by SplitMix64 (Steele, Lea and Flood, 2014)."""
    word = word + _WEYL_0
    mixed = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word, _inside(mixed ^ (mixed >> np.uint64(31)))


@rule
def normal(address: Address, purpose: np.uint64, index: np.uint64) -> float:
    """Return a standard normal draw, by inversion of one uniform."""
    return normal_quantile(uniform(address, purpose, index))


@inlined
def _accepted(u: float, x: float, v: float, d: float) -> bool:
    """Tell whether d v^3, v = 1 + x / sqrt(9 d) > 0, is a Gamma(d + 1/3, 1) draw (Marsaglia and Tsang, 2000)."""
    square = x * x
    # nearly every draw passes the squeeze, which needs no logarithm
    return u < 1.0 - 0.0331 * square * square or (
        math.log(u) < 0.5 * square + d - d * v * v * v + 3.0 * d * math.log(v)
    )


@inlined
def quick_gamma(u: float, other: float, d: float, c: float) -> float:
    """Return a Gamma(d + 1/3, 1) draw from two uniforms, c = 1 / sqrt(9 d); below 0 where they are rejected."""
    x = normal_quantile(u)
    v = 1.0 + c * x
    return d * v * v * v if v > 0.0 and _accepted(other, x, v, d) else -1.0


@rule
def log_gamma_draw(address: Address, purpose: np.uint64, index: np.uint64, shape: float) -> float:
    """Return the logarithm of a Gamma(shape, 1) draw; a log, because small shapes underflow."""
    boosted = shape if shape >= 1.0 else shape + 1.0
    d = boosted - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    log_draw = math.log(d)
    for attempt in range(_ATTEMPTS):
        u0, u1, u2, _ = uniforms(address, purpose, index * _ATTEMPTS + np.uint64(attempt))
        x = normal_quantile(u0)
        v = 1.0 + c * x
        if v > 0.0 and _accepted(u1, x, v, d):
            log_draw = math.log(d) + 3.0 * math.log(v)
            if shape < 1.0:  # Gamma(s) = Gamma(s + 1) U^(1/s)
                log_draw += math.log(u2) / shape
            break
    return log_draw


@rule
def logit_beta_draw(address: Address, purpose: np.uint64, index: np.uint64, alpha: float, beta: float) -> float:
    """Return the log odds of a Beta(alpha, beta) draw: finite where the draw itself would round to 0 or 1."""
    two = np.uint64(2)
    first = log_gamma_draw(address, purpose, two * index, alpha)
    second = log_gamma_draw(address, purpose, two * index + np.uint64(1), beta)
    return first - second


@rule
def student_draw(address: Address, purpose: np.uint64, index: np.uint64, freedom: float) -> float:
    """Return a Student t draw: a normal over the root of a scaled chi-square; infinite freedom gives the normal."""
    two = np.uint64(2)
    # the gamma's attempts begin at (2 index + 1) * 2**16, far from the normal's own address
    z = normal(address, purpose, two * index * _ATTEMPTS)
    if math.isinf(freedom):
        return z
    half = 0.5 * freedom
    log_gamma = log_gamma_draw(address, purpose, two * index + np.uint64(1), half)
    return z * math.exp(0.5 * (math.log(half) - log_gamma))


@rule
def binomial_from_uniform(u: float, trials: int, p: float) -> int:
    """Return a Binomial(trials, p) draw by inversion, outwards from the mode: about sqrt(trials) short steps."""
    if trials <= 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return trials
    if trials == 1:
        return 1 if u < p else 0
    mode = min(int((trials + 1) * p), trials)
    # (1 - p)^n is at least 1 - n p: most draws of a rare event need no logarithm
    if (mode == 0 and trials * p < 1.0 - u) or (mode == trials and trials * (1.0 - p) < 1.0 - u):
        return mode
    odds = p / (1.0 - p)
    up = down = math.exp(log_binomial_pmf(mode, trials, p))
    high = low = mode
    u -= up
    while u > 0.0:
        # the terms' two ratios share one division; each is zero where its tail ends
        a, b = high + 1.0, odds * (trials - low + 1.0)
        share = 1.0 / (a * b)
        up *= odds * (trials - high) * b * share
        high += 1
        u -= up
        if u <= 0.0:
            return high
        down *= low * a * share
        low -= 1
        u -= down
        if u <= 0.0:
            return low
        if up + down < 1e-300:  # both tails exhausted: what is left of u is rounding
            break
    return mode


@rule
def poisson_from_uniform(u: float, mean: float) -> int:
    """Return a Poisson(mean) draw by inversion, outwards from the mode: about sqrt(mean) short steps."""
    if mean <= 0.0:
        return 0
    high = low = int(mean)
    up = down = math.exp(log_poisson_pmf(high, mean))
    u -= up
    while u > 0.0:
        high += 1
        up *= mean / high
        u -= up
        if u <= 0.0:
            return high
        if low > 0:
            down *= low / mean
            low -= 1
            u -= down
            if u <= 0.0:
                return low
        elif up < 1e-300:  # both tails exhausted: what is left of u is rounding
            break
    return int(mean) if u > 0.0 else low


@rule
def fill_dirichlet(
    address: Address, purpose: np.uint64, index: np.uint64, concentration: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Fill a Dirichlet draw, float array (category): Gamma draws over their sum, in logarithms against underflow."""
    size = concentration.size
    most = -math.inf
    for k in range(size):
        out[k] = log_gamma_draw(address, purpose, index * np.uint64(size) + np.uint64(k), concentration[k])
        most = max(most, out[k])
    total = 0.0
    for k in range(size):
        out[k] = math.exp(out[k] - most)
        total += out[k]
    for k in range(size):
        out[k] /= total


@rule
def multinomial_draw(
    address: Address, purpose: np.uint64, trials: int, p: NDArray[np.float64], counts: NDArray[np.int64]
) -> None:
    """Fill counts with a Multinomial(trials, p) draw: one binomial of what is left per arm, one uniform each."""
    left = trials
    mass = 0.0
    for arm in range(p.size):
        mass += p[arm]
    u0 = u1 = u2 = u3 = 0.0
    for arm in range(p.size - 1):
        if arm % 4 == 0:
            u0, u1, u2, u3 = uniforms(address, purpose, np.uint64(arm // 4))
        count = 0
        if left > 0 and p[arm] > 0.0:
            count = binomial_from_uniform(u0, left, min(p[arm] / mass, 1.0))
        u0, u1, u2 = u1, u2, u3
        counts[arm] = count
        left -= count
        mass -= p[arm]
    counts[p.size - 1] = left
