"""The parts of a step of a simulation whose outcomes are late or lost, or whose shares have limits.

A step without either is in steps.py; these parts use the same rules, with the outcome learned when it becomes known.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import dirichlet, laws, posterior, two_parameter_laws, worlds
from doublesampling.rules.allocate import Limits, allocate
from doublesampling.rules.bundles import PolicySettings, Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.choose import choose
from doublesampling.rules.choose.propensities import ModeScratch
from doublesampling.rules.choose.shares import fill_policy_shares
from doublesampling.rules.compiled import spliced
from doublesampling.rules.draws import Address
from doublesampling.rules.specialise import Constant, specialised
from doublesampling.rules.steps import CATEGORIES, FORGETTING_WEIGHTS, FRESH, PAIRS, look, student_optimality
from doublesampling.rules.trials.assignment import draw_from_shares, draw_in_burn_in

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# how an arm is chosen: by the policy itself, or from its shares within the limits of an allocation
DIRECT, SHARED = range(2)


class Late(NamedTuple):
    """Delay, dropout and allocation of a simulation, and what is on its way; arrays of one thread."""

    delay: int
    """Further decisions until an outcome is known; -1 where it is drawn."""
    delays: FloatArray
    """(d): P(delay <= d), where it is drawn."""
    dropout: float
    limits: Limits
    burn_in: int
    block: int
    """0 where there are no permuted blocks."""
    modes: ModeScratch
    shares: FloatArray
    wanted: FloatArray
    held: BoolArray
    active: BoolArray
    assigned: IntArray
    left: IntArray
    head: IntArray
    """(time), with the next: outcomes that become known then, see trials/bundles.py."""
    tail: IntArray
    following: IntArray
    arm: IntArray
    paid: FloatArray
    contexts: FloatArray
    """(time, entry): as the belief saw them."""


@specialised(spliced)
def begin_late(late: Late) -> None:
    """Nothing is on its way, no arm was played."""
    for a in range(late.assigned.size):
        late.assigned[a] = late.left[a] = 0
    for t in range(late.head.size):
        late.head[t] = -1


@specialised(spliced)
def see(
    family: Constant, kind: Constant, law: Constant, sharing: Constant, address: Address, world: Any, prior: Any,
    scratch: Scratch, best: float,
) -> float:  # fmt: skip
    """Fill what the policy looks at; returns the best mean."""
    truth, parameters = scratch.truth, scratch.parameters
    if family == PAIRS:
        stage = world.means[((int(address[3]) - 1) // world.every) % world.means.shape[0]]
        best = stage[0]
        for a in range(truth.size):
            truth[a] = stage[a]
            best = max(best, truth[a])
    elif family == CATEGORIES:
        state = scratch.state
        for a in range(truth.size):
            parameters[a, 0] = dirichlet.mean_value(state.concentration[a], world.values)
        if kind != kinds.ORACLE:
            dirichlet.fill_reward_draws(state.concentration, world.values, address, state.shares, scratch.samples)
    elif family != FRESH:
        best = look(address, world, prior, scratch)
    if kind == kinds.DOUBLE_SAMPLING or kind == kinds.TOP_TWO or (kind == kinds.THOMPSON and sharing == SHARED):
        if family == CATEGORIES:
            dirichlet.count_best(scratch.samples, scratch.p, scratch.votes)
        elif family in (PAIRS, FRESH):
            two_parameter_laws.fill_optimality(law, parameters, scratch.p, scratch.survey, scratch.panel)
        else:
            student_optimality(parameters, scratch.p, scratch.survey, scratch.panel)
    return best


@specialised(spliced)
def pick(
    kind: Constant, form: Constant, law: Constant, sharing: Constant, address: Address, policy: PolicySettings,
    scratch: Scratch, late: Late,
) -> tuple[int, int]:  # fmt: skip
    """The arm and N (1 where an arm is drawn from shares)."""
    number = 1
    if sharing == DIRECT:
        arm, number = choose(kind, form, law, policy, address, scratch)
    else:
        arm = draw_in_burn_in(address, late.burn_in, late.assigned, late.active, late.wanted)
        if arm < 0:
            fill_policy_shares(kind, form, law, policy, address, scratch, late.modes, late.wanted)
            allocate(late.wanted, late.active, late.limits, late.shares, late.held)
            arm = draw_from_shares(address, late.block, late.shares, late.left, late.wanted)
    late.assigned[arm] += 1
    return arm, number


@specialised(spliced)
def pay(family: Constant, law: Constant, arm: int, address: Address, world: Any, scratch: Scratch) -> float:
    """What the world pays; a category by its number."""
    if family == CATEGORIES:
        paid = float(worlds.category_of_reward(world.chances[arm], arm, address))
    elif family in (PAIRS, FRESH):
        paid = two_parameter_laws.pay(law, scratch.truth[arm], arm, address)
    elif world.pays == worlds.GAUSSIAN:
        paid = worlds.gaussian_reward(scratch.truth[arm], world.noise[arm], arm, address)
    else:
        paid = worlds.bernoulli_reward(scratch.truth[arm], arm, address)
    return paid


@specialised(spliced)
def absorb(
    family: Constant, law: Constant, arm: int, paid: float, context: FloatArray, prior: Any, scratch: Scratch
) -> None:
    """Learn an outcome that has become known; context : as it was seen when the arm was played."""
    parameters, state = scratch.parameters, scratch.state
    if family == CATEGORIES:
        dirichlet.learn(state.concentration, prior.concentration, prior.discount, arm, int(paid))
    elif family == FRESH:
        parameters[arm, 0], parameters[arm, 1] = posterior.beta_update(parameters[arm, 0], parameters[arm, 1], paid)
    elif family == PAIRS:
        first, second = parameters[:, 0], parameters[:, 1]
        two_parameter_laws.learn(law, first, second, prior.first, prior.second, prior.discount, arm, paid)
    else:
        mean, root, alpha, beta = state.mean, state.root, state.alpha, state.beta
        if family == FORGETTING_WEIGHTS:
            for a in range(alpha.size):
                alpha[a], beta[a] = posterior.nig_forget(
                    mean[a], root[a], alpha[a], beta[a], prior.anchors[a], state.work
                )
        if law == laws.LOGISTIC:
            posterior.logistic_update(mean[arm], root[arm], context, paid, state.scaled, state.work)
        else:
            alpha[arm], beta[arm] = posterior.nig_update(
                mean[arm], root[arm], alpha[arm], beta[arm], context, paid, state.work
            )
