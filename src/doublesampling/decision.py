"""One decision, from a belief or from anybody's posterior draws."""

import hashlib
import secrets
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks, html
from doublesampling.allocation import Allocation, check_allocation
from doublesampling.assignment import Assignment, assign_every_arm, check_known, check_past, draw_within
from doublesampling.beliefs import Belief
from doublesampling.beliefs.marginals import address_words
from doublesampling.evidence import BeliefEvidence, DrawsEvidence, Played
from doublesampling.features import ContextLike
from doublesampling.given import check_belief, check_choice, check_draws, check_policy
from doublesampling.policies import Choice, Policy, is_ours
from doublesampling.quick_records import quick_record

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

S = TypeVar("S")


class Address(NamedTuple):
    """Where a decision's random numbers were found: the same address gives the same decision, in any process."""

    seed: int
    bandit: int
    realization: int
    time: int


@quick_record
class Decision:
    """The arm to play, and everything that led to it. Arrays are (arm) and read-only.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> decision = ds.decide(ds.DoubleSampling(), belief, state, seed=7)
    >>> decision.arm, decision.candidates, decision.votes.tolist()
    (1, 1, [0, 1])
    >>> print(decision)
    play arm 1   decision 5, N = 1 candidate, DoubleSampling()
      arm   P(best)   votes   propensity
        0     0.189       0       0.1890
    >   1     0.811       1       0.8110
    """

    arm: int
    """The arm to play, counted from 0."""
    probability_optimal: FloatArray
    """p_hat: how probably each arm is the best, as the M samples estimate it; ds.probability_optimal is exact."""
    candidates: int
    """N: how many candidate arms were drawn."""
    votes: IntArray
    """How many of the candidates were each arm."""
    propensities: FloatArray
    """The probability with which each arm could have been played, given p_hat; nan where it is not known. With an
    allocation, the arm was drawn from these, not elected by the votes."""
    address: Address
    """Where the random numbers came from."""
    policy: Policy
    """The policy that decided."""
    allocation: Allocation | None = None
    """The limits on the propensities; None where there are none."""

    def __post_init__(self) -> None:
        self.probability_optimal.setflags(write=False)
        self.votes.setflags(write=False)
        self.propensities.setflags(write=False)

    @cached_property
    def probability_optimal_sd(self) -> FloatArray:
        """sigma_hat: the deviation of the indicator that the arm is the best, sqrt(p_hat (1 - p_hat))."""
        found = np.sqrt(self.probability_optimal * (1.0 - self.probability_optimal))
        found.setflags(write=False)
        return found

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
            f"{'s' if self.candidates > 1 else ''}, {self.policy!r}"
            f"{'' if self.allocation is None else f', {self.allocation!r}'}",
            "  arm   P(best)   votes   propensity",
        ]
        for arm, (p, votes, propensity) in enumerate(
            zip(self.probability_optimal, self.votes, self.propensities, strict=True)
        ):
            mark = ">" if arm == self.arm else " "
            lines.append(f"{mark} {arm:3d}   {p:7.3f}   {votes:5d}   {propensity:10.4f}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same table for a notebook."""
        rows = [
            (arm, html.bar(p), votes, propensity)
            for arm, (p, votes, propensity) in enumerate(
                zip(self.probability_optimal, self.votes, self.propensities, strict=True)
            )
        ]
        made = f"decision {self.address.time}, N = {self.candidates}, {self.policy!r}"
        headings = ["arm", "P(best)", "votes", "propensity"]
        return html.block(html.table(rows, headings, caption=f"Play arm {self.arm}", marked=self.arm), html.line(made))


def make_decision(policy: Policy, evidence: BeliefEvidence | DrawsEvidence, address: Address) -> Decision:
    """Return the decision of a policy; answers of policies that are not ours are checked."""
    answer = policy.choose(evidence)
    choice = answer if isinstance(answer, Choice) and is_ours(policy) else check_choice(policy, answer, evidence)
    return Decision(*choice, address, policy)


def draw_again(decision: Decision, within: Assignment) -> Decision:
    """Return a decision whose arm is drawn within an allocation, whatever arm the policy chose."""
    check_known(decision.propensities, decision.policy)
    words = address_words(decision.address.seed, decision.address.time, realization=decision.address.realization)
    arm, propensities = draw_within(within, decision.propensities, words)
    return replace(decision, arm=arm, propensities=propensities, allocation=within.allocation)


def _limited(made: Decision, allocation: object, assigned: ArrayLike | None, previous: Decision | None) -> Decision:
    given, arms = check_allocation(allocation), made.propensities.size
    return draw_again(made, assign_every_arm(given, arms, check_past(given, arms, assigned, previous)))


def check_seed(seed: object) -> int:
    """A seed as it was given, or a new one that nobody has used: the decision's address records it."""
    return secrets.randbits(64) if seed is None else checks.seed(seed)


def probability_optimal(belief: Belief[S], state: S, context: ContextLike | None = None) -> FloatArray:
    """Return the probability that each arm has the highest expected reward, float array (arm), by a sum or quadrature.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update(belief.prior(), arm=1, reward=1)
    >>> ds.probability_optimal(belief, state).round(6).tolist()
    [0.333333, 0.666667]
    """
    return check_belief(belief).marginals(state, context).probability_optimal.copy()


def decide(
    policy: Policy,
    belief: Belief[S],
    state: S,
    context: ContextLike | None = None,
    *,
    seed: int | None = None,
    time: int | None = None,
    played: Played | None = None,
    allocation: Allocation | None = None,
    assigned: ArrayLike | None = None,
    previous: Decision | None = None,
) -> Decision:
    """Decide which arm to play next, from what a belief has learned.

    The same ``seed``, state and time give the same decision, in any process. Without a seed one is drawn, and recorded
    in ``decision.address``, so that the decision can be computed again.

    ``time`` is the number of this decision, counted from 1: Bayes-UCB and horizons look at it, and it is part of the
    random address. It defaults to one more than the observations in the state; where outcomes come late, pass it, so
    that two decisions from one state draw different luck. ``played`` is for policies of your own that look at counts
    and sums of rewards.

    ``allocation`` limits the propensities (docs/how-to/allocation.md). Its burn-in and blocks depend on earlier
    decisions: ``assigned`` is how many there were of each arm, by default the observations in the state, and
    ``previous`` the decision before this one.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=3)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 1, 2, 2], rewards=[0, 1, 1, 1])
    >>> decision = ds.decide(ds.DoubleSampling(), belief, state, seed=1)
    >>> decision.arm, decision.candidates, round(float(decision.propensities.sum()), 6)
    (1, 1, 1.0)
    """
    policy, belief = check_policy(policy), check_belief(belief)
    laws = belief.marginals(state, context)
    when = int(cast(Any, state).observations) + 1 if time is None else checks.time(time)
    address = Address(check_seed(seed), 0, 0, when)
    evidence = BeliefEvidence(laws, address_words(address.seed, when), when, belief, state, context, played)
    made = make_decision(policy, evidence, address)
    if allocation is None:
        return made
    return _limited(made, allocation, cast(Any, state).counts if assigned is None else assigned, previous)


def decide_from_draws(
    policy: Policy,
    draws: Any,
    *,
    seed: int | None = None,
    time: int | None = None,
    played: Played | None = None,
    allocation: Allocation | None = None,
    assigned: ArrayLike | None = None,
    previous: Decision | None = None,
) -> Decision:
    """Decide from anybody's posterior draws of the expected rewards.

    ``draws`` is an array (sample, arm) or (chain, draw, arm), or an xarray or ArviZ object whose dimensions have those
    names. They are the first sampling, so their number takes the place of the policy's ``samples``. ``time`` is the
    number of this decision, counted from 1. Without it the random address comes from the draws themselves: the same
    draws and seed decide the same, new draws have new luck. ``seed`` and ``allocation`` as in ``decide``.

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
    address = Address(check_seed(seed), 0, luck, known or 1)
    words = address_words(address.seed, address.time, realization=luck)
    made = make_decision(policy, DrawsEvidence(given, words, known, played=played), address)
    return made if allocation is None else _limited(made, allocation, assigned, previous)
