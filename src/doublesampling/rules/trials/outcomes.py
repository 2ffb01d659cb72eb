"""Outcomes of participants: what an arm pays, when it becomes known, and what is learned from it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import dirichlet, laws, posterior, two_parameter_laws, worlds
from doublesampling.rules.compiled import rule, spliced
from doublesampling.rules.draws import DELAY, DROPOUT, Address, uniform
from doublesampling.rules.looks.bundles import KNOWN_SO_FAR, POINTER, SIZE, TICK, WAITING, Known
from doublesampling.rules.specialise import Constant, specialised
from doublesampling.rules.trials.bundles import (
    ASSIGNED,
    KNOWN,
    KNOWN_SQUARES,
    KNOWN_TOTAL,
    TOTAL,
    TrialSpace,
    TrialState,
    TrialWorld,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Prior = Any
"""PairPrior, WeightsPrior or DirichletPrior, as the law wants."""


@specialised(spliced)
def begin_trial(law: Constant, prior: Prior, control: int, known: Known, state: TrialState) -> None:
    """Put all arms at their prior, all of them active, and nothing on its way."""
    for a in range(known.active.size):
        known.active[a] = True
        known.counts[a] = state.assigned[a] = state.left[a] = 0
        for i in range(state.record.shape[1]):
            state.record[a, i] = 0.0
        if law == laws.STUDENT:
            state.mean[a, 0], state.root[a, 0, 0] = prior.mean[a, 0], prior.root[a, 0, 0]
            state.alpha[a], state.beta[a] = prior.alpha[a], prior.beta[a]
        elif law == laws.SAMPLED:
            for k in range(prior.concentration.shape[1]):
                state.concentration[a, k] = prior.concentration[a, k]
        else:
            known.parameters[a, 0], known.parameters[a, 1] = prior.first[a], prior.second[a]
    known.place[0], known.place[1], known.place[2] = control, -1, 0
    for t in range(state.head.size):
        state.head[t] = -1


@specialised(rule)
def outcome_of(law: Constant, world: TrialWorld, progress: float, arm: int, address: Address) -> float:
    """What an arm pays a participant, or its category; progress goes from 0 to 1 over the trial."""
    if law == laws.SAMPLED:
        return float(worlds.category_of_reward(world.chances[arm], arm, address))
    mean = world.means[arm] + progress * world.drift[arm]
    if law == laws.STUDENT:
        return worlds.gaussian_reward(mean, world.noise[arm], arm, address)
    return two_parameter_laws.pay(law, mean, arm, address)


@rule
def time_until_known(delay: int, delays: FloatArray, dropout: float, address: Address) -> int:
    """Further decisions until an outcome is known; -1 where it never is.

    delays : float array (d), P(delay <= d), for a delay of -1.
    """
    if dropout > 0.0 and uniform(address, DROPOUT, np.uint64(0)) < dropout:
        return -1
    if delay >= 0:
        return delay
    u, low, high = uniform(address, DELAY, np.uint64(0)), 0, delays.size - 1
    while low < high:
        middle = (low + high) // 2
        if delays[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@rule
def put_off(participant: int, when: int, head: IntArray, tail: IntArray, following: IntArray) -> None:
    """Add a participant's outcome to those that become known at a time, after the others."""
    following[participant] = -1
    if head[when] < 0:
        head[when] = participant
    else:
        following[tail[when]] = participant
    tail[when] = participant


@specialised(spliced)
def learn(
    law: Constant, prior: Prior, arm: int, paid: float, known: Known, state: TrialState, space: TrialSpace
) -> None:
    """Update what is known by one outcome."""
    known.counts[arm] += 1
    if law == laws.STUDENT:
        if prior.anchors.shape[0] > 0:
            for a in range(state.alpha.size):
                state.alpha[a], state.beta[a] = posterior.nig_forget(
                    state.mean[a], state.root[a], state.alpha[a], state.beta[a], prior.anchors[a], space.work
                )
        state.alpha[arm], state.beta[arm] = posterior.nig_update(
            state.mean[arm], state.root[arm], state.alpha[arm], state.beta[arm], space.one, paid, space.work
        )
    elif law == laws.SAMPLED:
        dirichlet.learn(state.concentration, prior.concentration, prior.discount, arm, int(paid))
    else:
        first, second = known.parameters[:, 0], known.parameters[:, 1]
        two_parameter_laws.learn(law, first, second, prior.first, prior.second, prior.discount, arm, paid)


@specialised(spliced)
def fill_known(
    law: Constant, prior: Prior, address: Address, world: TrialWorld, known: Known, state: TrialState, space: TrialSpace
) -> None:
    """Fill the marginals, or posterior draws, from what was learned."""
    arms = known.active.size
    if law == laws.STUDENT:
        for a in range(arms):
            location, scale, freedom = posterior.nig_marginal(
                state.mean[a], state.root[a], state.alpha[a], state.beta[a], prior.noise[a], space.one
            )
            known.parameters[a, 0], known.parameters[a, 1], known.parameters[a, 2] = location, scale, freedom
    elif law == laws.SAMPLED:
        dirichlet.fill_reward_draws(state.concentration, world.values, address, space.category, known.draws)
        for a in range(arms):
            known.parameters[a, 0] = dirichlet.mean_value(state.concentration[a], world.values)


@rule
def _worth(values: FloatArray, paid: float) -> float:
    """Return what an outcome counts: the value of its category where there are categories."""
    return values[int(paid)] if values.size > 0 else paid


@specialised(spliced)
def enrol(
    law: Constant, world: TrialWorld, progress: float, arm: int, address: Address, at: IntArray, state: TrialState
) -> None:
    """Give the participant of this tick an arm and its outcome, which becomes known later, or never."""
    t = at[TICK]
    paid = outcome_of(law, world, progress, arm, address)
    state.arm[t], state.paid[t] = arm, paid
    state.assigned[arm] += 1
    state.record[arm, ASSIGNED] += 1.0
    state.record[arm, TOTAL] += _worth(world.values, paid)
    at[SIZE] += 1
    delay = time_until_known(world.delay, world.delays, world.dropout, address)
    if delay >= 0:
        put_off(t, t + delay, state.head, state.tail, state.following)
        at[WAITING] += 1


@specialised(spliced)
def learn_next(
    law: Constant, prior: Prior, world: TrialWorld, known: Known, at: IntArray, state: TrialState, space: TrialSpace
) -> None:
    """Learn from the next outcome that becomes known in this tick."""
    participant = at[POINTER]
    arm, paid = state.arm[participant], state.paid[participant]
    learn(law, prior, arm, paid, known, state, space)
    worth = _worth(world.values, paid)
    state.record[arm, KNOWN] += 1.0
    state.record[arm, KNOWN_TOTAL] += worth
    state.record[arm, KNOWN_SQUARES] += worth * worth
    at[KNOWN_SO_FAR] += 1
    at[WAITING] -= 1
    at[POINTER] = state.following[participant]
