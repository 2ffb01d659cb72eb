"""Make one decision of a live experiment, over the arms that are still active."""

import hashlib
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.assignment import Assignment, Participants, Past
from doublesampling.beliefs.marginals import address_words
from doublesampling.decision import Address, Decision, draw_again, make_decision
from doublesampling.errors import RewardError
from doublesampling.evidence import BeliefEvidence, Played
from doublesampling.live.design import Design, resize_belief
from doublesampling.live.own_classes import is_own, make_anew, own_code
from doublesampling.live.played import fold_belief, split

_AT_LOOKS = 2**62
"""The decisions of the policy at looks have random addresses of their own: numbers that no other decision has."""


class Known(NamedTuple):
    """What a decision or a look is made from."""

    arms: tuple[str, ...]
    active: tuple[int, ...]
    looks: tuple[dict[str, Any], ...]
    """The content of the looks before it."""
    belief: Any
    state: Any
    """The belief's state."""
    played: Played | None


def decide_next(design: Design, known: Known, context: Any, past: Past | None, *, number: int, time: int) -> Decision:
    """Return the decision with this number, as the design says: by the policy, or from the shares of the last look."""
    within = limits_within(design, known.arms, known.active, past)
    if within is None or not within.allocation.at_looks:
        return decide_at(
            design.policy, known.belief, known.state, known.active, context,
            seed=design.seed, number=number, time=time, played=known.played, within=within,
        )  # fmt: skip
    return draw_again(replace(_since_last_look(design, known), address=Address(design.seed, 0, number, time)), within)


def _since_last_look(design: Design, known: Known) -> Decision:
    """Return the policy's decision at the last look, or from the prior where there was none; arms may be new since."""
    stored = next((look["policy"] for look in reversed(known.looks) if look["policy"] is not None), None)
    if stored is None:
        return decide_at_look(design, prior_basis(design, known.arms, known.active), time=1)

    def padded(name: str, kind: type) -> Any:
        values: NDArray[Any] = np.array(stored[name], dtype=kind)
        return np.pad(values, (0, len(known.arms) - values.size))

    return Decision(
        int(np.argmax(padded("propensities", float))),
        padded("probability_optimal", float),
        stored["candidates"],
        padded("votes", np.int64),
        padded("propensities", float),
        Address(design.seed, 0, 0, 1),
        design.policy,
    )


def decide_at_look(design: Design, known: Known, *, time: int) -> Decision:
    """Return the policy's decision after these looks, whose propensities are the shares until the next one."""
    return decide_at(
        design.policy, known.belief, known.state, known.active, None,
        seed=design.seed, number=_AT_LOOKS + len(known.looks), time=time, played=known.played,
    )  # fmt: skip


def prior_basis(design: Design, arms: tuple[str, ...], active: tuple[int, ...]) -> Known:
    """Return what a decision among these arms knows before any outcome."""
    fold = resize_belief(fold_belief(design), len(arms))
    with own_code(design.belief):
        belief, state, played = split(fold, fold.prior(), active)
    return Known(arms, active, (), belief, state, played)


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
    known = prior_basis(design, design.arms, every)
    context = None if known.belief.dimension is None else np.ones(known.belief.dimension)
    if is_own(known.belief):
        _check_learning(known.belief, context)
    past = Past(0, np.zeros(len(every), dtype=np.int64)) if design.in_order else None
    decide_next(design, known, context, past, number=1, time=1)


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
