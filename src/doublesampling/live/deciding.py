"""Make one decision of a live experiment, over the arms that are still active."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from doublesampling.beliefs.marginals import address_words
from doublesampling.decision import Address, Decision, make_decision
from doublesampling.evidence import BeliefEvidence
from doublesampling.live.design import Design


def decide_at(
    policy: Any, belief: Any, state: Any, active: tuple[int, ...], context: Any, *, seed: int, number: int, time: int
) -> Decision:
    """Return a decision among the active arms; dropped arms get probability, votes and propensity 0.

    The random address is (seed, number of the decision, time), so two decisions from the same state draw different
    random numbers, also where they are made at the same time.
    """
    laws = belief.marginals(state, context)
    if len(active) < belief.arms:
        laws = laws.only(list(active))
    words = address_words(seed, time, realization=number)
    evidence = BeliefEvidence(laws, words, time, belief, state, context, active=active)
    found = make_decision(policy, evidence, Address(seed, 0, number, time))
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
    belief = design.belief
    context = None if belief.dimension is None else np.ones(belief.dimension)
    every = tuple(range(belief.arms))
    decide_at(design.policy, belief, belief.prior(), every, context, seed=design.seed, number=1, time=1)


def digest(state: Any, active: tuple[int, ...]) -> str:
    """Return the SHA-256 digest of the statistics that a decision uses."""
    return hashlib.sha256(f"{state.to_json()}|{list(active)}".encode()).hexdigest()
