"""Exact computations for two Bernoulli arms: against fractions, published values, other code, and simulations."""

import functools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

import doublesampling as ds
from doublesampling.errors import SettingError
from doublesampling.exact import optimal
from doublesampling.exact.forward import Forward
from doublesampling.exact.layers import check_room, layer_size
from tests import exact
from tests.chance import assert_mean

State = tuple[int, int, int, int]


def todays_rule(horizon: int) -> ds.DoubleSampling:
    """Double sampling with the count of the horizon that FACTS has the numbers of."""
    return ds.DoubleSampling(samples=None, horizon=horizon, count="doubt")


def optimum(horizon: int, prior: tuple[tuple[int, int], tuple[int, int]]) -> Fraction:
    """The largest expected number of successes, over a dictionary of states, in fractions."""
    (a, b), (c, d) = prior

    @functools.cache
    def value(state: State) -> Fraction:
        if sum(state) == horizon:
            return Fraction(0)
        s1, f1, s2, f2 = state
        m1, m2 = Fraction(a + s1, a + b + s1 + f1), Fraction(c + s2, c + d + s2 + f2)
        first = m1 * (1 + value((s1 + 1, f1, s2, f2))) + (1 - m1) * value((s1, f1 + 1, s2, f2))
        second = m2 * (1 + value((s1, f1, s2 + 1, f2))) + (1 - m2) * value((s1, f1, s2, f2 + 1))
        return max(first, second)

    return value((0, 0, 0, 0))


def earned(horizon: int, prior: tuple[tuple[int, int], tuple[int, int]], share: Callable[..., float]) -> float:
    """The expected number of successes of a policy that plays the second arm with probability ``share(state)``."""
    (a, b), (c, d) = prior

    @functools.cache
    def value(s1: int, f1: int, s2: int, f2: int) -> float:
        if s1 + f1 + s2 + f2 == horizon:
            return 0.0
        m1, m2 = (a + s1) / (a + b + s1 + f1), (c + s2) / (c + d + s2 + f2)
        second = share(a + s1, b + f1, c + s2, d + f2, s1 + f1 + s2 + f2 + 1)
        total = (1 - second) * (m1 * (1 + value(s1 + 1, f1, s2, f2)) + (1 - m1) * value(s1, f1 + 1, s2, f2))
        return total + second * (m2 * (1 + value(s1, f1, s2 + 1, f2)) + (1 - m2) * value(s1, f1, s2, f2 + 1))

    return value(0, 0, 0, 0)


@pytest.mark.parametrize("prior", [((1, 1), (1, 1)), ((2, 1), (1, 3)), ((3, 2), (3, 2))], ids=repr)
@pytest.mark.parametrize("horizon", [1, 2, 5, 8])
def test_the_optimum_is_that_of_a_recursion_in_fractions(horizon, prior):
    found = ds.bayes_optimal(horizon, prior=prior)
    assert found.successes == pytest.approx(float(optimum(horizon, prior)), rel=1e-14)
    best, _ = integrate.quad(
        lambda x: 1 - stats.beta.cdf(x, *prior[0]) * stats.beta.cdf(x, *prior[1]), 0, 1, epsabs=1e-13
    )
    assert found.regret == pytest.approx(horizon * best - found.successes, abs=1e-11)


@pytest.mark.parametrize(
    ("horizon", "successes", "regret"),
    [
        (60, 38.562343247, 1.43766),
        (100, 64.918420651, 1.74825),
        (200, 131.094081013, 2.23925),
        pytest.param(500, 330.309813752, 3.02352, marks=pytest.mark.slow),
    ],
)
def test_the_optimum_agrees_with_published_values(horizon, successes, regret):
    """T = 60 is the value that the BinaryBandit project prints."""
    found = ds.bayes_optimal(horizon)
    assert round(found.successes, 9) == successes
    assert round(found.regret, 5) == regret


@pytest.mark.parametrize(
    ("horizon", "above"),
    [
        (60, {"Thompson": 59.3, "paper": 41.9, "today": 14.6, "greedy": 31}),
        (100, {"Thompson": 59.4, "today": 15.3}),
        pytest.param(200, {"Thompson": 58.6, "paper": 30.3, "today": 15.9, "greedy": 106}, marks=pytest.mark.slow),
        pytest.param(500, {"Thompson": 56.6, "paper": 22.9, "today": 16.5, "greedy": 236}, marks=pytest.mark.slow),
    ],
)
def test_policies_are_as_far_above_the_optimum_as_measured_before(horizon, above):
    """The numbers of another implementation, in per cent."""
    policies = {
        "Thompson": ds.ThompsonSampling(),
        "paper": ds.DoubleSampling(samples=None),
        "today": todays_rule(horizon),
        "greedy": ds.Greedy(),
    }
    best = ds.bayes_optimal(horizon).regret
    for name, percent in above.items():
        found = 100 * (ds.exact_regret(policies[name], horizon) / best - 1)
        assert found == pytest.approx(percent, abs=0.5 if isinstance(percent, int) else 0.05001), name


def double_sampling_share(policy: ds.DoubleSampling) -> Callable[..., float]:
    def share(a0: float, b0: float, a1: float, b1: float, time: int) -> float:
        belief = ds.BetaBernoulli(arms=2, alpha=(a0, a1), beta=(b0, b1))
        return float(ds.decide(policy, belief, belief.prior(), time=time).propensities[1])

    return share


SHARES: list[tuple[object, Callable[..., float]]] = [
    (ds.ThompsonSampling(), exact.thompson),
    (ds.DoubleSampling(samples=None), double_sampling_share(ds.DoubleSampling(samples=None))),
    (
        ds.DoubleSampling(samples=None, false_alarm="markov", ties="first"),
        double_sampling_share(ds.DoubleSampling(samples=None, false_alarm="markov", ties="first")),
    ),
    (todays_rule(12), double_sampling_share(todays_rule(12))),
    (ds.Greedy(), exact.greedy("random")),
    (ds.EpsilonGreedy(0.3, ties="first"), exact.greedy("first", 0.3)),
    (ds.BayesUCB(), exact.bayes_ucb("random")),
    (ds.TopTwo(0.7), exact.top_two(0.7)),
    (ds.UCB1(), exact.by_index(exact.ucb1_value, "random", (1, 1))),
    (ds.KLUCB(ties="first"), exact.by_index(exact.kl_ucb_value, "first", (1, 1))),
    (ds.IMED(), exact.by_index(exact.imed_value, "random", (1, 1))),
]


@pytest.mark.parametrize(("policy", "share"), SHARES, ids=[repr(policy) for policy, _ in SHARES])
def test_regrets_are_those_of_a_recursion_over_a_dictionary(policy, share):
    """At given probabilities, and averaged over the prior."""
    theta = (0.35, 0.8)
    expected = exact.expected_regret(theta, (1, 1), 8, share)
    assert ds.exact_regret(policy, 8, theta=theta) == pytest.approx(expected, rel=1e-9)
    averaged = 8 * 2 / 3 - earned(8, ((1, 1), (1, 1)), share)
    assert ds.exact_regret(policy, 8) == pytest.approx(averaged, rel=1e-9)


def test_priors_of_the_arms_may_differ():
    prior = ((2, 1), (1, 3))
    successes = earned(7, prior, exact.thompson)
    best, _ = integrate.quad(lambda x: 1 - stats.beta.cdf(x, 2, 1) * stats.beta.cdf(x, 1, 3), 0, 1, epsabs=1e-13)
    assert ds.exact_regret(ds.ThompsonSampling(), 7, prior=prior) == pytest.approx(7 * best - successes, rel=1e-9)
    belief = ds.BetaBernoulli(arms=2, alpha=(2, 1), beta=(1, 3))
    assert ds.exact_regret(ds.ThompsonSampling(), 7, prior=belief) == ds.exact_regret(
        ds.ThompsonSampling(), 7, prior=prior
    )


def test_equal_arms_are_exchanged_without_changing_a_number():
    """Half of the states are stored where arms can be exchanged; a tie rule that cannot matter stores all of them."""
    mirrored, whole = ds.ThompsonSampling(), ds.DoubleSampling(samples=None, max_candidates=1, ties="first")
    assert Forward(mirrored, np.ones((2, 2)), 4).mirrored
    assert not Forward(whole, np.ones((2, 2)), 4).mirrored
    theta = [(0.2, 0.7), (0.7, 0.2), (0.0, 1.0)]
    both = [ds.exact_regret(policy, 25, theta=theta) for policy in (mirrored, whole)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-12)
    assert both[0][0] == pytest.approx(both[0][1], rel=1e-12)


def test_threads_do_not_change_a_number():
    for threads in (1, 3):
        assert ds.exact_regret(ds.ThompsonSampling(), 60, threads=threads) == ds.exact_regret(ds.ThompsonSampling(), 60)
        assert ds.bayes_optimal(60, threads=threads).successes == ds.bayes_optimal(60).successes


@pytest.mark.parametrize("policy", [todays_rule(100), ds.DoubleSampling(samples=None), ds.IMED()], ids=repr)
def test_simulations_agree(policy):
    theta = (0.45, 0.6)
    played = ds.simulate(ds.BernoulliBandit(theta), policy, horizon=100, realizations=3000, seed=5, times=[100])
    assert_mean(played.final_regret.values.ravel(), ds.exact_regret(policy, 100, theta=theta))


def test_no_policy_is_better_than_the_optimum():
    for prior in (None, (0.5, 2.5), ((1, 1), (4, 3))):
        best = ds.bayes_optimal(20, prior=prior).regret
        for policy in (ds.Greedy(), ds.ThompsonSampling(), ds.KLUCB(), ds.InformationDirected()):
            assert ds.exact_regret(policy, 20, prior=prior) > best


def test_the_optimal_decisions():
    """The best arm of every state, by the values that follow each."""
    best = ds.bayes_optimal(8, keep=8)
    assert best.kept == 8
    assert best.arms() == (0, 1)
    assert best.arms(successes=(1, 0)) == (0,)
    assert best.arms(failures=(1, 0)) == (1,)
    assert best.arms(successes=(0, 5), failures=(0, 2)) == (1,)  # the last decision is greedy
    assert best.arms(successes=(2, 1), failures=(2, 1)) == (1,), "equal means: the lesser known arm"
    uneven = ds.bayes_optimal(8, keep=8, prior=((1, 1), (2, 1)))
    assert uneven.arms() == (1,)
    with pytest.raises(SettingError, match=r"first 10 decisions are kept, and this is number 12.*keep=12"):
        ds.bayes_optimal(20).arms(successes=(5, 6))


def test_what_cannot_be_computed_is_refused(monkeypatch):
    monkeypatch.setattr(optimal, "free_memory", lambda: 2e9)
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: ds.exact_regret(ds.DoubleSampling(), 5), r"Write DoubleSampling\(samples=None\)"),
        (lambda: ds.exact_regret(ds.BayesUCB(samples=9), 5), r"Write BayesUCB\(samples=None\)"),
        (lambda: ds.exact_regret(ds.Oracle(), 5), "no posterior knows"),
        (lambda: ds.exact_regret(ds.LinUCB(), 5), "linear beliefs"),
        (lambda: ds.exact_regret("greedy", 5), "policies of this package, got 'greedy'"),
        (lambda: ds.exact_regret(ds.Greedy(), 5, theta=(0.5, 1.5)), "between 0 and 1, got 1.5"),
        (lambda: ds.exact_regret(ds.Greedy(), 5, theta=(0.5,)), "pair of probabilities"),
        (lambda: ds.exact_regret(ds.Greedy(), 0), "horizon must be"),
        (lambda: ds.exact_regret(ds.Greedy(), 10**6), "Use simulate"),
        (lambda: ds.bayes_optimal(5, prior=(1, 2, 3)), "prior must be"),
        (lambda: ds.bayes_optimal(5, prior=(-1, 2)), "alpha and beta"),
        (lambda: ds.bayes_optimal(5, prior=ds.BetaBernoulli(arms=3)), "two arms"),
        (lambda: ds.bayes_optimal(5, keep=6), "keep must be"),
        (lambda: ds.bayes_optimal(5, device="tpu"), "device must be"),
        (lambda: ds.bayes_optimal(4999), r"needs 166.7 GB of memory, and 2.0 GB are free. The longest .* fits is 1103"),
    ]
    for call, words in refused:
        with pytest.raises(SettingError, match=words):
            call()


def test_the_longest_horizon_that_fits_is_named():
    def room(t: int) -> float:
        return 8.0 * layer_size(t, False)

    assert [layer_size(t, False) for t in (0, 1, 2, 3)] == [1, 4, 10, 20]
    assert layer_size(3, True) == 10
    with pytest.raises(SettingError, match="fits is 37"):
        check_room(100, room, room(37) / 0.9 + 1, "It")
