"""Make one decision of a live experiment, over the arms that are still active."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from doublesampling.assignment import Assignment, Participants, Past
from doublesampling.beliefs.marginals import address_words
from doublesampling.decision import Address, Decision, draw_again, make_decision
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
    within: Assignment | None = None,
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
    if len(active) < belief.arms:
        found = _among_all(found, belief.arms, active)
    return found if within is None else draw_again(found, within)


def _among_all(found: Decision, arms: int, active: tuple[int, ...]) -> Decision:
    """Return a decision among the active arms as one among all arms."""

    def spread(values: Any) -> Any:
        full = np.zeros(arms, dtype=values.dtype)
        full[list(active)] = values
        return full

    return replace(
        found,
        arm=active[found.arm],
        probability_optimal=spread(found.probability_optimal),
        votes=spread(found.votes),
        propensities=spread(found.propensities),
    )


def limits_within(
    design: Design, arms: tuple[str, ...], active: tuple[int, ...], past: Past | None
) -> Assignment | None:
    """Return what a decision among these arms is drawn within; None for a design without an allocation."""
    if design.allocation is None:
        return None
    which = np.zeros(len(arms), dtype=np.bool_)
    which[list(active)] = True
    initial = np.arange(len(arms)) < len(design.arms)
    limits = design.allocation.limits(arms) if arms == design.arms else design.allocation.resolve(arms)
    if past is not None:  # arms may have been added since the last decision
        counts = None if past.counts is None else np.pad(past.counts, (0, len(arms) - past.counts.size))
        shares = past.propensities
        shares = None if shares is None else np.pad(shares, (0, len(arms) - shares.size))
        past = past._replace(counts=counts, propensities=shares)
    return Assignment(design.allocation, limits, Participants(which, initial), past)


def check_decidable(design: Design) -> None:
    """Make one decision from the prior, so that a policy that does not suit its belief is refused at creation."""
    every = tuple(range(design.belief.arms))
    fold = fold_belief(design)
    with own_code(design.belief):
        belief, state, played = split(fold, fold.prior(), every)
    context = None if belief.dimension is None else np.ones(belief.dimension)
    if is_own(belief):
        _check_learning(belief, context)
    past = Past(0, np.zeros(len(every), dtype=np.int64)) if design.in_order else None
    decide_at(
        design.policy, belief, state, every, context, seed=design.seed, number=1, time=1, played=played,
        within=limits_within(design, design.arms, every, past),
    )  # fmt: skip


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
