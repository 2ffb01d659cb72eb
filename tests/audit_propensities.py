"""Measure recorded propensities against how often each arm is played: every policy, many states, many seeds."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import doublesampling as ds

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# per arm: how often the propensity was in each of these ranges, and the arm was played
_EDGES = np.array([-1.0, 0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0 - 1e-9, 1.0])
_FEW = 1000
_TIME = 26


class Case(NamedTuple):
    """A policy in a state: ``decide`` takes a seed, ``decide_many`` a number of decisions, each of its own luck."""

    policy: Any
    state: str
    decide: Callable[[int], ds.Decision]
    decide_many: Callable[[int], ds.Decisions] | None = None
    share: float = 1.0
    """Of the seeds that other cases get: less where a decision takes long."""


def double_samplings() -> list[Any]:
    """Double sampling with each of its settings."""
    return [
        ds.DoubleSampling(), ds.DoubleSampling(samples=None), ds.DoubleSampling(samples=3),
        ds.DoubleSampling(samples=20, ties="first"), ds.DoubleSampling(horizon=200),
        ds.DoubleSampling(horizon=60, samples=None, ties="first"),
        ds.DoubleSampling(false_alarm="markov", log_base=math.e),
        ds.DoubleSampling(false_alarm="chebyshev", log_base=math.e, samples=50),
        ds.DoubleSampling(scale=7.0, samples=None), ds.DoubleSampling(max_candidates=2, samples=10),
        ds.DoubleSampling.as_published(samples=30),
    ]  # fmt: skip


def other_policies() -> list[Any]:
    """Policies that any belief can serve and whose propensities are known."""
    return [
        ds.ThompsonSampling(), ds.BayesUCB(), ds.BayesUCB(ties="first"), ds.Greedy(), ds.Greedy(ties="first"),
        ds.EpsilonGreedy(0.0), ds.EpsilonGreedy(0.25), ds.EpsilonGreedy(1.0), ds.TopTwo(), ds.TopTwo(0.9),
        ds.InformationDirected(),
    ]  # fmt: skip


def index_policies() -> list[Any]:
    """Policies that count wins and losses."""
    return [ds.UCB1(), ds.KLUCB(), ds.IMED(), ds.IMED(ties="first")]


def _beta(*pairs: tuple[int, int]) -> tuple[Any, Any]:
    """Beta arms with so many successes and failures each."""
    belief = ds.BetaBernoulli(arms=len(pairs))
    arms = np.repeat(np.arange(len(pairs)), [sum(pair) for pair in pairs])
    rewards = np.concatenate([[1] * wins + [0] * losses for wins, losses in pairs])
    return belief, belief.update_batch(belief.prior(), arms, rewards)


def beta_states() -> dict[str, tuple[Any, Any]]:
    """Beta arms in doubt, equal, nearly certain, and many."""
    return {
        "2 Beta arms": _beta((3, 5), (6, 4)),
        "3 Beta arms": _beta((2, 6), (4, 5), (8, 3)),
        "3 equal Beta arms": _beta((0, 0), (0, 0), (0, 0)),
        "2 of 3 Beta arms equal": _beta((3, 4), (5, 2), (5, 2)),
        "3 Beta arms, nearly certain": _beta((9, 25), (30, 28), (60, 20)),
        "6 Beta arms": _beta((1, 3), (2, 2), (5, 4), (3, 3), (0, 1), (7, 5)),
    }


def other_states() -> dict[str, tuple[Any, Any, Any]]:
    """Other beliefs: (belief, state, context)."""
    rng = np.random.default_rng(7)
    arms = np.arange(12) % 3
    x = rng.uniform(size=(12, 2))
    gaussian = ds.Gaussian(arms=3)
    linear = ds.LinearGaussian(arms=3, dimension=2, noise=1.0)
    poisson, waiting = ds.GammaPoisson(arms=3), ds.GammaExponential(arms=3)
    logistic = ds.Logistic(arms=3, dimension=2)
    categories = ds.DirichletCategorical(arms=3, values=[0, 1, 5])
    rewards, counts = rng.normal(1.0, 1.0, 12), rng.poisson(4.0, 12)
    return {
        "Student": (gaussian, gaussian.update_batch(gaussian.prior(), arms, rewards), None),
        "normal, context": (linear, linear.update_batch(linear.prior(), arms, rewards, x), [0.3, 0.9]),
        "Gamma": (poisson, poisson.update_batch(poisson.prior(), arms, counts), None),
        "inverse Gamma": (waiting, waiting.update_batch(waiting.prior(), arms, counts + 0.5), None),
        "logistic": (logistic, logistic.update_batch(logistic.prior(), arms, counts > 4, x), [0.3, 0.9]),
        "Dirichlet": (categories, categories.update_batch(categories.prior(), arms, np.take([0, 1, 5], arms)), None),
    }


def draws_states() -> dict[str, FloatArray]:
    """Posterior draws (sample, arm): in doubt, with ties, nearly certain."""
    rng = np.random.default_rng(8)
    return {
        "draws": rng.normal([0.0, 0.2, 0.4], 0.5, size=(300, 3)),
        "draws with ties": rng.integers(0, 3, size=(300, 3)).astype(float),
        "draws, nearly certain": rng.normal([0.0, 1.0, 1.8], 0.3, size=(300, 3)),
        "equal draws": np.ones((300, 3)),
    }


def cases() -> Iterator[Case]:
    """Every policy in every state that it can decide in."""

    def from_belief(policy: Any, name: str, belief: Any, state: Any, context: Any = None) -> Case:
        def many(count: int) -> ds.Decisions:
            shown = None if context is None else np.tile(context, (count, 1))
            states = [state] * count if context is None else state
            return ds.decide_many(policy, belief, states, shown, seed=7, times=np.full(count, _TIME))

        # decide_many has one compiled loop for these, and calls decide in turn for the others
        looped = isinstance(belief, ds.BetaBernoulli | ds.GammaPoisson | ds.GammaExponential | ds.LinearGaussian)
        compiled = looped and isinstance(policy, ds.DoubleSampling | ds.ThompsonSampling)
        one = lambda seed: ds.decide(policy, belief, state, context, seed=seed, time=_TIME)  # noqa: E731
        return Case(policy, name, one, many if compiled else None, 0.1 if name == "Dirichlet" else 1.0)

    for name, (belief, state) in beta_states().items():
        for policy in [*double_samplings(), *other_policies(), *index_policies()]:
            yield from_belief(policy, name, belief, state)
    for name, (belief, state, context) in other_states().items():
        chosen = [ds.DoubleSampling(samples=20), ds.DoubleSampling(horizon=60, samples=None), *other_policies()]
        if name in ("Student", "normal, context", "logistic"):
            chosen += [ds.LinUCB(), ds.LinUCB(0.0)]
        if name == "Dirichlet":  # a thousand times slower, and information comes from draws
            chosen = [ds.DoubleSampling(samples=20), ds.ThompsonSampling(), ds.TopTwo(), ds.Greedy()]
        for policy in chosen:
            yield from_belief(policy, name, belief, state, context)
    for name, draws in draws_states().items():
        for policy in [*double_samplings(), *other_policies(), ds.LinUCB()]:
            yield Case(policy, name, _from_draws(policy, draws))


def _from_draws(policy: Any, draws: FloatArray) -> Callable[[int], ds.Decision]:
    return lambda seed: ds.decide_from_draws(policy, draws, seed=seed, time=_TIME)


def play(case: Case, seeds: int) -> tuple[IntArray, FloatArray]:
    """The arm played (seed) and the propensities recorded (seed, arm).

    Few where each decision is made by itself and nothing is left to chance.
    """
    if case.decide_many is not None:
        found = case.decide_many(seeds)
        return found.arm, found.propensities
    made = [case.decide(seed) for seed in range(min(seeds, _FEW))]
    if any(((d.propensities > 0.0) & (d.propensities < 1.0)).any() for d in made):
        made += [case.decide(seed) for seed in range(_FEW, seeds)]
    return np.array([d.arm for d in made]), np.array([d.propensities for d in made])


class Found(NamedTuple):
    """What a case gave: decisions, and the smallest p-value."""

    case: str
    compiled: bool
    decisions: int
    p_value: float


def measure(number: int, seeds: int) -> Found:
    """Play one of the cases: for processes, which are told its number."""
    case = next(itertools.islice(cases(), number, None))
    arms, propensities = play(case, seeds if case.decide_many else int(seeds * case.share))
    where = f"{case.policy!r} in {case.state}"
    return Found(where, case.decide_many is not None, len(arms), smallest_p_value(arms, propensities))


def smallest_p_value(arms: IntArray, propensities: FloatArray) -> float:
    """How probable is so large a difference of frequency and propensity, over arms and ranges of propensity."""
    if not np.allclose(propensities.sum(axis=1), 1.0, atol=1e-9):
        return 0.0
    smallest = 1.0
    for arm in range(propensities.shape[1]):
        p, hit = propensities[:, arm], arms == arm
        for low, high in itertools.pairwise(_EDGES.tolist()):
            inside = (p > low) & (p <= high)
            if inside.any():
                smallest = min(smallest, _p_value(hit[inside], p[inside]))
    return smallest


def _p_value(hit: NDArray[np.bool_], p: FloatArray) -> float:
    """Of so many hits, each of its own probability: normal, or Poisson where hits or misses are few."""
    if p.mean() > 0.5:
        hit, p = ~hit, 1.0 - p
    hits, mean, variance = int(hit.sum()), float(p.sum()), float((p * (1.0 - p)).sum())
    if np.ptp(p) == 0.0:
        return float(stats.binomtest(hits, p.size, min(max(float(p[0]), 0.0), 1.0)).pvalue)
    if variance >= 100.0:
        return float(2.0 * stats.norm.sf(abs(hits - mean) / math.sqrt(variance)))
    return float(min(2.0 * min(stats.poisson.sf(hits - 1, mean), stats.poisson.cdf(hits, mean)), 1.0))
