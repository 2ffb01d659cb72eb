"""One decision of a live experiment: the same rules as everywhere, over the arms that are still in."""

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
    """Decide among the active arms; the others get probability, votes and propensity 0.

    The random address is (seed, number of the decision, time): two decisions from the same knowledge draw different
    luck, also where they are made at once.
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


def rehearse(design: Design) -> None:
    """One decision from the prior: a policy that does not suit its belief is refused before the first unit."""
    belief = design.belief
    context = np.ones(belief.dimension) if hasattr(belief, "dimension") else None
    every = tuple(range(belief.arms))
    decide_at(design.policy, belief, belief.prior(), every, context, seed=design.seed, number=1, time=1)


def digest(state: Any, active: tuple[int, ...]) -> str:
    """A fingerprint of the statistics that a decision used."""
    return hashlib.sha256(f"{state.to_json()}|{list(active)}".encode()).hexdigest()
