"""One step of a realization: look, decide, be paid, learn. One rule per family of beliefs, for CPUs and GPUs.

``family``, ``kind`` and ``form`` (the policy) and ``law`` are constants where a step is compiled: what they do not need
is left out.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import dirichlet, laws, posterior, special, two_parameter_laws, worlds
from doublesampling.rules.bundles import (
    BernoulliWorld,
    BetaPrior,
    BetaState,
    CategoricalWorld,
    DirichletPrior,
    DirichletState,
    LinearWorld,
    PairPrior,
    Policy,
    Scratch,
    StagedWorld,
    WeightsPrior,
    WeightsState,
)
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.choose import choose, one_candidate
from doublesampling.rules.choose.information_directed import directed_choice
from doublesampling.rules.compiled import inlined, spliced
from doublesampling.rules.draws import Address
from doublesampling.rules.optimal_arm import carried_densities, compare_student, quadrature, recurrence
from doublesampling.rules.optimal_arm.regions import QUICK_BETA, QUICK_STUDENT
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

# families: how a belief is followed. Beta arms find p by the recurrence of two or three arms, by carried densities, or
# anew at every step; pairs of numbers may forget, and the world may move; weights may forget; categories
TRACKED, CARRIED, FRESH, PAIRS, WEIGHTS, FORGETTING_WEIGHTS, CATEGORIES = range(7)


@specialised(spliced)
def begin(scratch: Scratch) -> None:
    """Forget the realization before."""
    for a in range(scratch.p.size):
        scratch.p[a] = scratch.starts[a] = math.nan


@specialised(spliced)
def begin_beta(family: Constant, world: BernoulliWorld, prior: BetaPrior, scratch: Scratch) -> float:
    """Beta arms at their prior; returns the best mean."""
    begin(scratch)
    best = world.means[0]
    for a in range(scratch.p.size):
        scratch.parameters[a, 0], scratch.parameters[a, 1], scratch.parameters[a, 2] = (
            prior.alpha[a],
            prior.beta[a],
            0.0,
        )
        scratch.priors[a, 0], scratch.priors[a, 1] = prior.alpha[a], prior.beta[a]
        scratch.truth[a] = world.means[a]
        best = max(best, world.means[a])
    state: BetaState = scratch.state
    if family == TRACKED:
        for i in range(prior.track.size):
            state.track[i] = prior.track[i]
    if family == CARRIED:
        carried_densities.begin(state.notes)
    return best


@specialised(spliced)
def beta_step(
    family: Constant, kind: Constant, form: Constant, address: Address, world: BernoulliWorld, policy: Policy,
    scratch: Scratch,
) -> tuple[int, int, float]:  # fmt: skip
    """A Bernoulli bandit under Beta beliefs: the arm, N and the reward."""
    state: BetaState = scratch.state
    parameters, p = scratch.parameters, scratch.p
    alpha, beta = state.alpha, state.beta
    if family == TRACKED:
        recurrence.tracked_optimality(state.track, p)
    elif family == CARRIED:
        carried_densities.carried_optimality(parameters, p, scratch.survey, state.panels, state.notes)
    elif kind in (kinds.DOUBLE_SAMPLING, kinds.TOP_TWO, kinds.EPSILON_THOMPSON):
        quadrature.probability_optimal(laws.BETA, parameters, QUICK_BETA, p, scratch.survey, scratch.panel)
    number = 1
    if family == TRACKED and kind == kinds.THOMPSON:
        arm = one_candidate(policy, address, p, scratch.votes)
    elif family == TRACKED and kind == kinds.INFORMATION_DIRECTED:
        recurrence.tally(alpha, beta, state.track, scratch.tally)
        arm = directed_choice(address, scratch.tally)
    else:
        arm, number = choose(kind, form, laws.BETA, policy, address, scratch)
    paid = worlds.bernoulli_reward(world.means[arm], arm, address)
    if family == TRACKED:
        if p.size == 2:
            recurrence.follow_two(alpha, beta, state.track, arm, paid > 0.5)
        else:
            recurrence.follow_three(alpha, beta, state.track, arm, paid > 0.5)
    elif family == CARRIED:
        carried_densities.carry(parameters, arm, paid > 0.5, state.panels, state.notes)
    alpha[arm], beta[arm] = posterior.beta_update(alpha[arm], beta[arm], paid)
    return arm, number, paid


@specialised(spliced)
def begin_pairs(prior: PairPrior, scratch: Scratch) -> None:
    """Beta or Gamma arms at their prior."""
    begin(scratch)
    for a in range(scratch.p.size):
        scratch.parameters[a, 0], scratch.parameters[a, 1], scratch.parameters[a, 2] = (
            prior.first[a],
            prior.second[a],
            0.0,
        )
        scratch.priors[a, 0], scratch.priors[a, 1] = prior.first[a], prior.second[a]


@specialised(spliced)
def pairs_step(
    kind: Constant, form: Constant, law: Constant, address: Address, world: StagedWorld, prior: PairPrior,
    policy: Policy, scratch: Scratch,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Rewards of 0 and 1, counts or waiting times, where beliefs may forget and means may move.

    The arm, N, the reward, the best mean.
    """
    parameters, truth = scratch.parameters, scratch.truth
    stage = world.means[((int(address[3]) - 1) // world.every) % world.means.shape[0]]
    best = stage[0]
    for a in range(truth.size):
        truth[a] = stage[a]
        best = max(best, truth[a])
    if kind in (kinds.DOUBLE_SAMPLING, kinds.TOP_TWO, kinds.EPSILON_THOMPSON):
        two_parameter_laws.fill_optimality(law, parameters, scratch.p, scratch.survey, scratch.panel)
    arm, number = choose(kind, form, law, policy, address, scratch)
    paid = two_parameter_laws.pay(law, truth[arm], arm, address)
    first, second = parameters[:, 0], parameters[:, 1]
    two_parameter_laws.learn(law, first, second, prior.first, prior.second, prior.discount, arm, paid)
    return arm, number, paid, best


@specialised(spliced)
def begin_weights(prior: WeightsPrior, scratch: Scratch) -> None:
    """Weights at their prior."""
    state: WeightsState = scratch.state
    begin(scratch)
    arms, size = prior.mean.shape
    for i in range(size):
        state.seen[i] = 1.0
    for a in range(arms):
        state.alpha[a], state.beta[a] = prior.alpha[a], prior.beta[a]
        for i in range(size):
            state.mean[a, i] = prior.mean[a, i]
            for j in range(size):
                state.root[a, i, j] = prior.root[a, i, j]


@specialised(inlined)
def student_optimality(parameters: FloatArray, p: FloatArray, survey: FloatArray, panel: FloatArray) -> None:
    """Sampling one under Normal-Inverse-Gamma beliefs, right to 1e-6."""
    if p.size == 2:
        first, scale, freedom = parameters[0, 0], parameters[0, 1], parameters[0, 2]
        second, other_scale, other_freedom = parameters[1, 0], parameters[1, 1], parameters[1, 2]
        if compare_student.resolved(scale, freedom, other_scale, other_freedom):
            p[0] = compare_student.first_above_second(first, scale, freedom, second, other_scale, other_freedom)
            p[1] = 1.0 - p[0]
            return
    quadrature.probability_optimal(laws.STUDENT, parameters, QUICK_STUDENT, p, survey, panel)


@specialised(spliced)
def look(address: Address, world: LinearWorld, prior: WeightsPrior, scratch: Scratch) -> float:
    """Fill the context, what each arm is worth there, and the law of what is known of it; returns the best mean."""
    state: WeightsState = scratch.state
    where = (address[0], address[1], np.uint64(0) if world.shared else address[2], address[3])
    worlds.fill_context(world.context, world.path, where, state.shown)
    if prior.sees_context:
        for i in range(state.seen.size):
            state.seen[i] = state.shown[i]
    best = -math.inf
    for a in range(scratch.truth.size):
        worth = worlds.linear_mean(world.weights[a], state.shown)
        scratch.truth[a] = special.logistic(worth) if world.pays == worlds.LOGIT else worth
        best = max(best, scratch.truth[a])
        location, scale, freedom = posterior.nig_marginal(
            state.mean[a], state.root[a], state.alpha[a], state.beta[a], prior.noise[a], state.seen
        )
        scratch.parameters[a, 0], scratch.parameters[a, 1], scratch.parameters[a, 2] = location, scale, freedom
    return best


@specialised(spliced)
def linear_step(
    family: Constant, kind: Constant, form: Constant, law: Constant, address: Address, world: LinearWorld,
    prior: WeightsPrior, policy: Policy, scratch: Scratch,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Any world that pays x^T w, under beliefs about w: the arm, N, the reward, the best arm's mean.

    law : STUDENT (w and the noise have Normal-Inverse-Gamma laws) or LOGISTIC (x^T w are log odds of a 1).
    """
    state: WeightsState = scratch.state
    best = look(address, world, prior, scratch)
    if kind in (kinds.DOUBLE_SAMPLING, kinds.TOP_TWO, kinds.EPSILON_THOMPSON):
        student_optimality(scratch.parameters, scratch.p, scratch.survey, scratch.panel)
    arm, number = choose(kind, form, law, policy, address, scratch)
    if world.pays == worlds.GAUSSIAN:
        paid = worlds.gaussian_reward(scratch.truth[arm], world.noise[arm], arm, address)
    else:
        paid = worlds.bernoulli_reward(scratch.truth[arm], arm, address)
    mean, root, alpha, beta = state.mean, state.root, state.alpha, state.beta
    if family == FORGETTING_WEIGHTS:
        for a in range(alpha.size):
            alpha[a], beta[a] = posterior.nig_forget(mean[a], root[a], alpha[a], beta[a], prior.anchors[a], state.work)
    if law == laws.LOGISTIC:
        posterior.logistic_update(mean[arm], root[arm], state.seen, paid, state.scaled, state.work)
    else:
        alpha[arm], beta[arm] = posterior.nig_update(
            mean[arm], root[arm], alpha[arm], beta[arm], state.seen, paid, state.work
        )
    return arm, number, paid, best


@specialised(spliced)
def begin_categories(world: CategoricalWorld, prior: DirichletPrior, scratch: Scratch) -> float:
    """Categories at their prior; returns the best mean value."""
    state: DirichletState = scratch.state
    begin(scratch)
    best = -math.inf
    for a in range(scratch.p.size):
        scratch.truth[a] = dirichlet.mean_value(world.chances[a], world.values)
        best = max(best, scratch.truth[a])
        for k in range(world.values.size):
            state.concentration[a, k] = prior.concentration[a, k]
    return best


@specialised(spliced)
def categories_step(
    kind: Constant, form: Constant, address: Address, world: CategoricalWorld, prior: DirichletPrior, policy: Policy,
    scratch: Scratch,
) -> tuple[int, int, float]:  # fmt: skip
    """Rewards in categories: sampling one as the paper writes it. The arm, N and the reward."""
    state: DirichletState = scratch.state
    concentration = state.concentration
    if kind in (kinds.GREEDY, kinds.EPSILON_GREEDY, kinds.EPSILON_THOMPSON):
        for a in range(scratch.p.size):
            scratch.parameters[a, 0] = dirichlet.mean_value(concentration[a], world.values)
    if kind == kinds.THOMPSON:
        dirichlet.fill_reward_draws(concentration, world.values, address, state.shares, scratch.samples[:1])
    elif kind != kinds.ORACLE and kind != kinds.GREEDY and kind != kinds.EPSILON_GREEDY:
        dirichlet.fill_reward_draws(concentration, world.values, address, state.shares, scratch.samples)
    if kind in (kinds.DOUBLE_SAMPLING, kinds.TOP_TWO, kinds.EPSILON_THOMPSON):
        dirichlet.count_best(scratch.samples, scratch.p, scratch.votes)
    arm, number = choose(kind, form, laws.SAMPLED, policy, address, scratch)
    category = worlds.category_of_reward(world.chances[arm], arm, address)
    dirichlet.learn(concentration, prior.concentration, prior.discount, arm, category)
    return arm, number, world.values[category]


@specialised(spliced)
def begin_realization(family: Constant, world: Any, prior: Any, scratch: Scratch) -> float:
    """Put the arms at their prior; returns the best mean, where the world does not change it at every step."""
    if family in (TRACKED, CARRIED, FRESH):
        return begin_beta(family, world, prior, scratch)
    if family == CATEGORIES:
        return begin_categories(world, prior, scratch)
    if family == PAIRS:
        begin_pairs(prior, scratch)
    else:
        begin_weights(prior, scratch)
    return 0.0


@specialised(spliced)
def step(
    family: Constant, kind: Constant, form: Constant, law: Constant, address: Address, world: Any, prior: Any,
    policy: Policy, scratch: Scratch, best: float,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Play one step of any family: the arm, N, the reward, the best mean; best is that of the step before."""
    if family == PAIRS:
        return pairs_step(kind, form, law, address, world, prior, policy, scratch)
    if family in (WEIGHTS, FORGETTING_WEIGHTS):
        return linear_step(family, kind, form, law, address, world, prior, policy, scratch)
    if family == CATEGORIES:
        arm, number, paid = categories_step(kind, form, address, world, prior, policy, scratch)
    else:
        arm, number, paid = beta_step(family, kind, form, address, world, policy, scratch)
    return arm, number, paid, best
