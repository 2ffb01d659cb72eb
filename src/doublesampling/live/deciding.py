"""Make one decision of a live experiment, over the arms that are still active."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from doublesampling.beliefs.marginals import address_words
from doublesampling.decision import Address, Decision, make_decision
from doublesampling.errors import RewardError
from doublesampling.evidence import BeliefEvidence, Played
from doublesampling.live.design import Design
from doublesampling.live.own_classes import is_own, make_anew, own_code
from doublesampling.live.played import fold_belief, split


def decide_at(
    policy: Any,
    belief: Any,
    state: Any,
    active: tuple[int, ...],
    context: Any,
    *,
    seed: int,
    number: int,
    time: int,
    played: Played | None = None,
) -> Decision:
    """Return a decision among the active arms; dropped arms get probability, votes and propensity 0.

    The random address is (seed, number of the decision, time), so two decisions from the same state draw different
    random numbers, also where they are made at the same time. A policy of one's own is made anew for every decision.
    """
    words = address_words(seed, time, realization=number)
    with own_code(policy, belief):
        if is_own(belief):  # a copy: its code must not change what the digest and the next decision are made from
            state = belief.state_from_json(state.to_json())
        laws = belief.marginals(state, context)
        if len(active) < belief.arms:
            laws = laws.only(list(active))
        evidence = BeliefEvidence(laws, words, time, belief, state, context, played, active)
        found = make_decision(make_anew(policy), evidence, Address(seed, 0, number, time))
    if len(active) == belief.arms:
        return found

    def spread(values: Any) -> Any:
        full = np.zeros(belief.arms, dtype=values.dtype)
        full[list(active)] = values
        return full

    return replace(
        found,
        arm=active[found.arm],
        probability_optimal=spread(found.probability_optimal),
        probability_optimal_sd=spread(found.probability_optimal_sd),
        votes=spread(found.votes),
        propensities=spread(found.propensities),
    )


def check_decidable(design: Design) -> None:
    """Make one decision from the prior, so that a policy that does not suit its belief is refused at creation."""
    every = tuple(range(design.belief.arms))
    fold = fold_belief(design)
    with own_code(design.belief):
        belief, state, played = split(fold, fold.prior(), every)
    context = None if belief.dimension is None else np.ones(belief.dimension)
    if is_own(belief):
        _check_learning(belief, context)
    decide_at(design.policy, belief, state, every, context, seed=design.seed, number=1, time=1, played=played)


def _check_learning(belief: Any, context: Any) -> None:
    """Learn from one reward that the belief accepts, so that states which cannot be stored are refused at creation."""
    prior = belief.prior().to_json()
    for reward in (1.0, 0.0):
        try:
            accepted = belief.check_reward(reward)
        except (RewardError, ValueError):
            continue
        with own_code(belief):
            state = belief.update(belief.state_from_json(prior), 0, accepted, context)
            belief.state_from_json(state.to_json())
            return


def digest(state: Any, active: tuple[int, ...]) -> str:
    """Return the SHA-256 digest of the statistics that a decision uses."""
    return hashlib.sha256(f"{state.to_json()}|{list(active)}".encode()).hexdigest()
