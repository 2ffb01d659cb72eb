"""Play the realizations of a trial on several threads, the same on any number of them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.allocation import Allocation
from doublesampling.beliefs import BetaBernoulli, DirichletCategorical, Gaussian
from doublesampling.checks import shown
from doublesampling.engine.trial_kernels import trial_kernel
from doublesampling.errors import SettingError
from doublesampling.policies import CompiledPolicy
from doublesampling.rules import laws
from doublesampling.rules.bundles import DirichletPrior, NoState, PairPrior, Policy, Scratch, WeightsPrior
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.information_directed import EXTRA_ROWS
from doublesampling.rules.choose.propensities import mode_scratch
from doublesampling.rules.looks.bundles import (
    ENDED,
    LOOKS,
    OUTCOME,
    SIZE,
    STATUS,
    LookRule,
    look_space,
    new_batch,
)
from doublesampling.rules.looks.entry_points import take_looks
from doublesampling.rules.optimal_arm.panels import PANEL_NODES
from doublesampling.rules.optimal_arm.regions import QUICK_BETA
from doublesampling.rules.trials.bundles import (
    ARM_COLUMNS,
    DIRECT,
    SHARED,
    TrialBlock,
    TrialDesign,
    TrialSpace,
    TrialState,
    TrialWorld,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BLOCK = 20
"""Realizations that a thread plays at a time."""
_SAMPLES = 1000  # posterior draws of beliefs whose law has no density, where the policy does not say


class Packed(NamedTuple):
    """A trial as the kernels take it."""

    law: int
    kind: int
    form: int
    sharing: int
    policy: Policy
    prior: Any
    priors: FloatArray
    design: TrialDesign
    rules: LookRule
    samples: int
    horizon: int
    arms: int


class Ends(NamedTuple):
    """How every realization ended."""

    outcome: IntArray
    """(scenario, realization): see rules/looks/bundles.py."""
    size: IntArray
    """(scenario, realization): participants."""
    selected: IntArray
    """(scenario, realization): the selected arm."""
    looks: IntArray
    """(scenario, realization)"""
    arms: FloatArray
    """(scenario, realization, arm, ARM_COLUMNS)"""


def pack(trial: Any, equal: bool) -> Packed:
    """Return a trial, or the same trial with equal allocation, as the kernels take it."""
    policy, belief, arms = trial.policy, trial.belief, trial.belief.arms
    _check_policy(policy, belief)
    law, prior, priors = _prior(belief)
    form, settings = policy.rule()
    table = policy.table(priors) if policy.counts_wins else None
    if table is not None:
        settings = settings._replace(table=table)
    allocation = trial.allocation or Allocation()
    sharing = DIRECT if trial.allocation is None else SHARED
    if sharing == SHARED and form == kinds.SAMPLES and not equal:
        raise SettingError(
            f"The propensities of {policy!r} are not known, so an allocation cannot change them. Use samples=None."
        )
    samples = settings.samples if policy.kind == kinds.INFORMATION_DIRECTED else 0
    if law == laws.SAMPLED:
        samples = settings.samples or _SAMPLES
    design, rules = _design(trial, Allocation() if equal else allocation, equal), _rules(trial)
    return Packed(law, policy.kind, form, sharing, settings, prior, priors, design, rules, samples, trial.horizon, arms)


def _check_policy(policy: Any, belief: Any) -> None:
    if not isinstance(policy, CompiledPolicy):
        raise SettingError(f"Trials are simulated with the policies of this package, got {shown(policy)}.")
    wins = isinstance(belief, BetaBernoulli) and belief.discount == 1.0
    if (policy.counts_wins and not wins) or (policy.linear_only and not isinstance(belief, Gaussian)):
        raise SettingError(f"{policy!r} does not work with {belief!r}. Choose another policy, or another belief.")


def _prior(belief: Any) -> tuple[int, Any, FloatArray]:
    """Return the law of an arm, the prior, and its two numbers per arm for policies that count wins."""
    state, none = belief.prior(), np.zeros((belief.arms, 2))
    if isinstance(belief, DirichletCategorical):
        return laws.SAMPLED, DirichletPrior(np.array(state.concentration), belief.discount), none
    if isinstance(belief, Gaussian):
        mean, root, alpha, beta = (np.array(part) for part in (state.mean, state.root, state.alpha, state.beta))
        anchors = belief.anchors if belief.discount < 1.0 else np.empty((0, 2, 3))
        return laws.STUDENT, WeightsPrior(mean, root, alpha, beta, belief.known_noise, False, anchors), none
    first, second = (part.copy() for part in state.pair)
    return belief.law, PairPrior(first, second, belief.discount), np.column_stack([first, second])


def _rules(trial: Any) -> LookRule:
    if trial.stopping is None:
        never = np.empty(0)
        return LookRule(never, never, never, never, 0.0, 0.0, False, 0)
    found: LookRule = trial.stopping.rule(trial.horizon)
    return found


def _design(trial: Any, allocation: Allocation, equal: bool) -> TrialDesign:
    looks = () if trial.stopping is None else trial.stopping.schedule(trial.horizon)
    return TrialDesign(
        looks=np.array(looks, dtype=np.int64),
        control=-1 if trial.control is None else trial.control,
        limits=allocation.limits(trial.arms),
        burn_in=allocation.burn_in,
        block=allocation.block or 0,
        at_looks=allocation.at_looks,
        equal=equal,
    )


def _states(packed: Packed, world: TrialWorld, trials: int) -> TrialState:
    """Return room for what is followed in so many trials."""
    arms, people = packed.arms, packed.horizon
    ticks = people + (world.delay if world.delay >= 0 else world.delays.size - 1)

    def whole(*shape: int) -> IntArray:
        return np.zeros((trials, *shape), dtype=np.int64)

    return TrialState(
        mean=np.empty((trials, arms, 1)),
        root=np.empty((trials, arms, 1, 1)),
        alpha=np.empty((trials, arms)),
        beta=np.empty((trials, arms)),
        concentration=np.empty((trials, arms, world.values.size)),
        record=np.zeros((trials, arms, ARM_COLUMNS)),
        assigned=whole(arms),
        left=whole(arms),
        shares=np.empty((trials, arms)),
        head=whole(ticks),
        tail=whole(ticks),
        following=whole(people),
        arm=whole(people),
        paid=np.empty((trials, people)),
    )


def _scratch(packed: Packed, world: TrialWorld) -> Scratch:
    arms = packed.arms
    directed = arms if packed.kind == kinds.INFORMATION_DIRECTED else 0
    return Scratch(
        parameters=np.zeros((arms, 3)),
        priors=packed.priors,
        truth=world.means.copy(),
        p=np.empty(arms),
        votes=np.empty(arms, dtype=np.int64),
        values=np.empty(arms),
        starts=np.empty(arms),
        survey=np.empty((0, 0)),
        panel=np.empty((0, 0, 0)),
        samples=np.empty((packed.samples, arms)),
        tally=np.empty((directed + EXTRA_ROWS, directed)),
        partial=np.empty((directed + 2, PANEL_NODES)),
        state=NoState(),
    )


def _space(packed: Packed, world: TrialWorld) -> TrialSpace:
    return TrialSpace(
        look=look_space(packed.arms, True),
        modes=mode_scratch(packed.policy.cap, packed.arms),
        shares=np.empty(packed.arms),
        wanted=np.empty(packed.arms),
        held=np.empty(packed.arms, dtype=np.bool_),
        one=np.ones(1),
        work=np.empty(1),
        category=np.empty(world.values.size),
    )


def play_block(packed: Packed, world: TrialWorld, place: TrialBlock, trials: int) -> Ends:
    """Return how so many realizations of one scenario end; arrays without a dimension for the scenario."""
    draws = packed.samples if packed.law == laws.SAMPLED else 0
    batch, states = new_batch(trials, packed.arms, draws), _states(packed, world, trials)
    scratch, space = _scratch(packed, world), _space(packed, world)
    advance = trial_kernel(packed.sharing, packed.kind, packed.form, packed.law)
    look = take_looks(packed.law)
    while (batch.progress[:, STATUS] != ENDED).any():
        advance(place, world, packed.prior, packed.policy, packed.design, batch, states, scratch, space)
        look(packed.rules, *QUICK_BETA, batch, space.look)
    at = batch.progress
    return Ends(at[:, OUTCOME], at[:, SIZE], batch.place[:, 1], at[:, LOOKS], states.record)


def play(packed: Packed, worlds: Sequence[TrialWorld], realizations: int, seed: int, threads: int) -> Ends:
    """Return how so many realizations of every scenario end."""
    places = [(scenario, start) for scenario in range(len(worlds)) for start in range(0, realizations, BLOCK)]

    def play_one(place: tuple[int, int]) -> Ends:
        scenario, start = place
        block = TrialBlock(np.uint64(seed), np.uint64(scenario), start, packed.horizon)
        return play_block(packed, worlds[scenario], block, min(BLOCK, realizations - start))

    if threads == 1 or len(places) == 1:
        found = [play_one(place) for place in places]
    else:
        with ThreadPoolExecutor(max_workers=threads) as pool:
            found = list(pool.map(play_one, places))
    joined = (np.concatenate(part) for part in zip(*found, strict=True))
    return Ends(*(part.reshape(len(worlds), realizations, *part.shape[1:]) for part in joined))
