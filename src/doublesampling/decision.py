"""One decision, from a belief or from anybody's posterior draws."""

import hashlib
import secrets
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs import Belief, BetaBernoulli, DirichletCategorical, DirichletMeans, Marginals
from doublesampling.beliefs.marginals import address_words, share_of_bests
from doublesampling.errors import SettingError
from doublesampling.given import check_belief, check_choice, check_draws, check_policy
from doublesampling.policies import Policy
from doublesampling.rules import entry_points
from doublesampling.rules.choose import baselines
from doublesampling.rules.compiled import plain

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_OURS = Policy.__module__  # whose choices need no check


class Address(NamedTuple):
    """Where a decision's random numbers were found: the same address gives the same decision, in any process."""

    seed: int
    bandit: int
    realization: int
    time: int


@dataclass(frozen=True, eq=False)
class Decision:
    """The arm to play, and everything that led to it. Arrays are (arm) and read-only."""

    arm: int
    """The arm to play, counted from 0."""
    probability_optimal: FloatArray
    """p_hat: how probably each arm is the best."""
    probability_optimal_sd: FloatArray
    """sigma_hat: the deviation of the indicator that the arm is the best, sqrt(p_hat (1 - p_hat))."""
    candidates: int
    """N: how many candidate arms were drawn."""
    votes: IntArray
    """How many of the candidates were each arm."""
    propensities: FloatArray
    """The probability with which each arm could have been played, given p_hat; nan where it is not known."""
    address: Address
    """Where the random numbers came from."""
    policy: Policy
    """The policy that decided."""

    def __post_init__(self) -> None:
        for name in ("probability_optimal", "probability_optimal_sd", "votes", "propensities"):
            getattr(self, name).setflags(write=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return all(
            np.array_equal(a, b, equal_nan=True)
            if isinstance(a, np.ndarray) and a.dtype.kind == "f"
            else np.all(a == b)
            for a, b in ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        )

    def __hash__(self) -> int:
        return hash((self.arm, self.candidates, self.address, self.probability_optimal.tobytes()))

    def __str__(self) -> str:
        """A small table: what is believed of each arm, what was drawn, what is played."""
        lines = [
            f"play arm {self.arm}   decision {self.address.time}, N = {self.candidates} candidate"
            f"{'s' if self.candidates > 1 else ''}, {self.policy!r}",
            "  arm   P(best)   votes   propensity",
        ]
        for arm, (p, votes, propensity) in enumerate(
            zip(self.probability_optimal, self.votes, self.propensities, strict=True)
        ):
            mark = ">" if arm == self.arm else " "
            lines.append(f"{mark} {arm:3d}   {p:7.3f}   {votes:5d}   {propensity:10.4f}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _FromBelief:
    """Evidence of a belief whose marginals are known: exact where the policy asks for it."""

    laws: Marginals | DirichletMeans
    words: NDArray[np.uint64]
    time: int
    belief: Belief
    state: Any
    given_draws: bool = False

    @property
    def arms(self) -> int:
        return int(self.laws.mean.size)

    def probability_optimal(self, samples: int | None) -> FloatArray:
        laws = self.laws
        return laws.probability_optimal if samples is None else laws.estimated_optimality(samples, self.words)

    def expected_rewards(self) -> FloatArray:
        return self.laws.mean

    def upper_quantiles(self, log_tail: float, samples: int | None) -> FloatArray:
        exact = self.laws.upper_quantiles(log_tail) if samples is None else None
        if exact is not None:
            return exact
        return _sample_quantiles(self.laws.draws_at(samples or DirichletCategorical.many, self.words), log_tail)

    def regret_and_information(self, samples: int | None) -> FloatArray:
        if samples is None and isinstance(self.laws, Marginals):
            return entry_points.tally_exactly(self.laws.law, self.laws.parameters)
        return entry_points.tally_draws(self.laws.draws_at(samples or DirichletCategorical.many, self.words))

    def wins_and_losses(self) -> FloatArray:
        if not isinstance(self.belief, BetaBernoulli) or self.belief.discount < 1.0:
            raise SettingError(
                "This policy counts wins and losses, which BetaBernoulli without a discount knows. "
                "Use it, or another policy."
            )
        prior = self.belief.prior()
        return np.column_stack([self.state.alpha - prior.alpha, self.state.beta - prior.beta])

    def location_and_scale(self) -> FloatArray:
        found = self.laws.location_and_scale
        if found is None:
            raise SettingError("LinUCB needs a Gaussian or linear belief. Use KLUCB for rewards of 0 and 1.")
        return found


@dataclass(frozen=True)
class _FromDraws:
    """Evidence of posterior draws (sample, arm): their number is M, whatever the policy would have drawn."""

    given: FloatArray
    words: NDArray[np.uint64]
    known_time: int | None
    given_draws: bool = True

    @property
    def arms(self) -> int:
        return int(self.given.shape[1])

    @property
    def time(self) -> int:
        if self.known_time is None:
            raise SettingError("This policy looks at the time. Pass time=, the number of this decision counted from 1.")
        return self.known_time

    def probability_optimal(self, samples: int | None) -> FloatArray:
        return share_of_bests(self.given)

    def expected_rewards(self) -> FloatArray:
        return np.asarray(self.given.mean(axis=0))

    def upper_quantiles(self, log_tail: float, samples: int | None) -> FloatArray:
        return _sample_quantiles(self.given, log_tail)

    def regret_and_information(self, samples: int | None) -> FloatArray:
        return entry_points.tally_draws(self.given)

    def wins_and_losses(self) -> FloatArray:
        raise SettingError("This policy counts wins and losses, which posterior draws do not show. Use another.")

    def location_and_scale(self) -> FloatArray:
        return np.column_stack([self.given.mean(axis=0), self.given.std(axis=0)])


def _sample_quantiles(draws: FloatArray, log_tail: float) -> FloatArray:
    rank = plain(baselines.sample_rank)(draws.shape[0], log_tail)
    return np.asarray(np.partition(draws, rank, axis=0)[rank])


def _decision(policy: Policy, evidence: _FromBelief | _FromDraws, address: Address) -> Decision:
    choice = policy.choose(evidence)
    if type(policy).__module__ != _OURS:
        choice = check_choice(policy, choice, evidence)
    arm, p, candidates, votes, propensities = choice
    return Decision(arm, p, np.sqrt(p * (1.0 - p)), candidates, votes, propensities, address, policy)


def _check_seed(seed: object) -> int:
    """A seed as it was given, or a new one that nobody has used: the decision's address records it."""
    return secrets.randbits(64) if seed is None else checks.seed(seed)


def probability_optimal(belief: Belief, state: Any, context: ArrayLike | None = None) -> FloatArray:
    """The probability that each arm has the highest expected reward, float array (arm), by quadrature.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update(belief.prior(), arm=1, reward=1)
    >>> ds.probability_optimal(belief, state).round(6).tolist()
    [0.333333, 0.666667]
    """
    return check_belief(belief).marginals(state, context).probability_optimal.copy()


def decide(
    policy: Policy,
    belief: Belief,
    state: Any,
    context: ArrayLike | None = None,
    *,
    seed: int | None = None,
    time: int | None = None,
) -> Decision:
    """Decide which arm to play next, from what a belief has learned.

    The same ``seed``, state and time give the same decision, in any process. Without a seed one is drawn, and recorded
    in ``decision.address``, so that the decision can be computed again.

    ``time`` is the number of this decision, counted from 1: Bayes-UCB and horizons look at it, and it is part of the
    random address. It defaults to one more than the observations in the state; where outcomes come late, pass it, so
    that two decisions from one state draw different luck.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=3)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 1, 2, 2], rewards=[0, 1, 1, 1])
    >>> decision = ds.decide(ds.DoubleSampling(), belief, state, seed=1)
    >>> decision.arm, decision.candidates, round(float(decision.propensities.sum()), 6)
    (1, 1, 1.0)
    """
    policy, belief = check_policy(policy), check_belief(belief)
    laws = belief.marginals(state, context)
    when = int(state.observations) + 1 if time is None else checks.time(time)
    address = Address(_check_seed(seed), 0, 0, when)
    evidence = _FromBelief(laws, address_words(address.seed, when), when, belief, state)
    return _decision(policy, evidence, address)


def decide_from_draws(policy: Policy, draws: Any, *, seed: int | None = None, time: int | None = None) -> Decision:
    """Decide from anybody's posterior draws of the expected rewards.

    ``draws`` is an array (sample, arm) or (chain, draw, arm), or an xarray or ArviZ object whose dimensions have those
    names. They are the first sampling, so their number takes the place of the policy's ``samples``. ``time`` is the
    number of this decision, counted from 1. Without it the random address comes from the draws themselves: the same
    draws and seed decide the same, new draws have new luck. ``seed`` as in ``decide``.

    >>> import numpy as np
    >>> import doublesampling as ds
    >>> draws = np.random.default_rng(1).normal([0.0, 1.0, 5.0], 1.0, size=(1000, 3))
    >>> ds.decide_from_draws(ds.DoubleSampling(), draws, seed=1).arm
    2
    """
    policy = check_policy(policy)
    given = check_draws(draws)
    known = None if time is None else checks.time(time)
    luck = 0 if known else int.from_bytes(hashlib.blake2b(given.tobytes(), digest_size=8).digest(), "little")
    address = Address(_check_seed(seed), 0, luck, known or 1)
    words = address_words(address.seed, address.time, realization=luck)
    return _decision(policy, _FromDraws(given, words, known), address)
