"""Random addresses: the generator's words, and the law of everything made of them."""

from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

from doublesampling.rules import draws
from tests.chance import assert_counts, assert_law, assert_mean
from tests.compiled_rules import CallableRules

compiled_draws = draws  # for the loop below, which is compiled
draws = CallableRules(draws)  # type: ignore[assignment]

U = np.uint64
MANY = 20_000

# Random123's known answers for philox4x64-10: counter, key, words
KNOWN_ANSWERS = [
    (
        (0, 0, 0, 0),
        (0, 0),
        (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B),
    ),
    (
        (2**64 - 1,) * 4,
        (2**64 - 1,) * 2,
        (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0),
    ),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x452821E638D01377, 0xBE5466CF34E90C6C),
        (0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(counter, key, words):
    assert draws.philox(*map(U, counter), *map(U, key)) == words


def test_philox_agrees_with_numpy():
    rng = np.random.default_rng(0)
    for _ in range(200):
        counter, key = rng.integers(0, 2**64, 4, dtype=U), rng.integers(0, 2**64, 2, dtype=U)
        counter[0] = min(int(counter[0]), 2**64 - 2)
        theirs = np.random.Philox(counter=counter, key=key).random_raw(4)  # counts up before it draws
        assert draws.philox(counter[0] + U(1), *counter[1:], *key) == tuple(theirs)


def test_uniforms_stay_strictly_inside_even_at_the_extreme_words():
    lowest, highest = draws._inside(U(0)), draws._inside(U(2**64 - 1))
    assert 0.0 < lowest == 2.0**-53
    assert 1.0 - 2.0**-53 == highest < 1.0


def test_a_stream_gives_the_published_answers():
    """SplitMix64 from 1234567, as its reference implementation prints it."""
    word = np.uint64(1234567)
    for wanted in (6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431):
        word, found = draws.next_uniform(word)
        word = np.uint64(word)
        assert found == ((wanted >> 12) + 0.5) * 2.0**-52


def test_streams_begin_where_their_address_says():
    """Two words of the same address, purpose or index apart, begin two streams."""
    address = (np.uint64(3), np.uint64(0), np.uint64(2), np.uint64(9))
    starts = {int(draws.stream(address, np.uint64(p), np.uint64(i))) for p in (7, 8) for i in range(50)}
    assert len(starts) == 100


def test_every_part_of_an_address_matters():
    home: Any = (U(1), U(2), U(3), U(4))
    seen = {draws.uniforms(home, U(5), U(6))}
    for i in range(4):
        seen.add(draws.uniforms((*home[:i], U(9), *home[i + 1 :]), U(5), U(6)))
    seen |= {draws.uniforms(home, U(9), U(6)), draws.uniforms(home, U(5), U(9))}
    assert len({u for four in seen for u in four}) == 4 * 7


@numba.njit
def _fill(kind, first, second, out):
    """Draws at successive times, so that a sequence has nothing but the address in common."""
    for i in range(out.size):
        address = (U(11), U(0), U(0), U(i))
        if kind == 0:
            out[i] = compiled_draws.uniform(address, U(1), U(0))
        elif kind == 1:
            out[i] = compiled_draws.normal(address, U(1), U(0))
        elif kind == 2:
            out[i] = compiled_draws.log_gamma_draw(address, U(1), U(0), first)
        elif kind == 3:
            out[i] = compiled_draws.logit_beta_draw(address, U(1), U(0), first, second)
        elif kind == 4:
            out[i] = compiled_draws.student_draw(address, U(1), U(0), first)
        else:
            out[i] = compiled_draws.binomial_from_uniform(
                compiled_draws.uniform(address, U(1), U(0)), int(first), second
            )


KINDS = {"uniform": 0, "normal": 1, "log gamma": 2, "logit beta": 3, "student": 4, "binomial": 5}


def many(kind: str, first: float = 0.0, second: float = 0.0, count: int = MANY) -> np.ndarray:
    out = np.empty(count)
    _fill(KINDS[kind], first, second, out)
    return out


def test_uniform_law():
    assert_law(many("uniform"), stats.uniform.cdf)


def test_uniforms_at_neighbouring_addresses_are_independent():
    u = many("uniform")
    cells = np.floor(u[:-1] * 8) * 8 + np.floor(u[1:] * 8)
    assert_counts(np.bincount(cells.astype(int), minlength=64), np.full(64, 1 / 64))


def test_normal_law():
    assert_law(many("normal"), stats.norm.cdf)


@pytest.mark.parametrize("shape", [1e-3, 0.05, 0.5, 1.0, 2.5, 40.0, 1e6])
def test_gamma_law(shape):
    assert_law(many("log gamma", shape), stats.loggamma(shape).cdf)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.5), (1.0, 1.0), (2.0, 700.0), (1e5, 2e5), (30.0, 0.2)])
def test_beta_law(alpha, beta):
    x = 1 / (1 + np.exp(-many("logit beta", alpha, beta)))
    assert_law(x, stats.beta(alpha, beta).cdf)


@pytest.mark.parametrize("freedom", [0.1, 1.0, 2.0, 7.5, 1e6])
def test_student_law(freedom):
    assert_law(many("student", freedom), stats.t(freedom).cdf)


def test_student_with_infinite_freedom_is_normal():
    assert_law(many("student", np.inf), stats.norm.cdf)


@pytest.mark.parametrize(
    ("trials", "p"), [(1, 0.3), (7, 0.5), (1000, 0.001), (1000, 0.37), (1000, 0.9995), (10**6, 0.2), (10**6, 1e-7)]
)
def test_binomial_law(trials, p):
    drawn = many("binomial", trials, p).astype(int)
    low, high = drawn.min(), drawn.max()
    law = stats.binom(trials, p)
    inside = np.bincount(drawn - low, minlength=high - low + 1)
    assert_counts(np.append(inside, 0), np.append(law.pmf(np.arange(low, high + 1)), law.cdf(low - 1) + law.sf(high)))


def test_binomial_is_certain_at_the_ends():
    assert draws.binomial_from_uniform(0.7, 10, 0.0) == 0
    assert draws.binomial_from_uniform(0.7, 10, 1.0) == 10
    assert draws.binomial_from_uniform(0.7, 0, 0.4) == 0


def multinomials(p: np.ndarray, trials: int, count: int = 5000) -> np.ndarray:
    out = np.empty((count, p.size), dtype=np.int64)
    for i in range(count):
        draws.multinomial_draw((U(5), U(0), U(0), U(i)), U(1), trials, p, out[i])
    return out


def test_multinomial_law_over_every_outcome():
    p, trials = np.array([0.2, 0.5, 0.3]), 4
    drawn = multinomials(p, trials)
    outcomes = [(i, j, trials - i - j) for i in range(trials + 1) for j in range(trials + 1 - i)]
    index = {outcome: i for i, outcome in enumerate(outcomes)}
    counts = np.bincount([index[tuple(row)] for row in drawn.tolist()], minlength=len(outcomes))
    assert_counts(counts, stats.multinomial(trials, p).pmf(outcomes))


def test_multinomial_moments_for_many_arms_and_samples():
    p = np.array([0.0, 0.1, 0.25, 0.0, 0.65])
    drawn = multinomials(p, 1000)
    assert (drawn.sum(axis=1) == 1000).all()
    assert (drawn[:, p == 0] == 0).all()
    for arm in (1, 2, 4):
        assert_mean(drawn[:, arm], 1000 * p[arm])
        assert_mean((drawn[:, arm] - 1000 * p[arm]) ** 2, 1000 * p[arm] * (1 - p[arm]))
