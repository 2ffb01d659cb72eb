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
from doublesampling.rules.looks.bundles import Known, LookRule, look_space, new_report
from doublesampling.rules.optimal_arm.panels import PANEL_NODES
from doublesampling.rules.trials.bundles import (
    ARM_COLUMNS,
    DIRECT,
    END_COLUMNS,
    EQUAL,
    SHARED,
    TrialBlock,
    TrialDesign,
    TrialRecord,
    TrialSpace,
    TrialState,
    TrialWorld,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BLOCK = 50
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
    samples: int
    horizon: int
    arms: int


class Ends(NamedTuple):
    """How every realization ended."""

    ends: IntArray
    """(scenario, realization, END_COLUMNS)"""
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
    sharing = EQUAL if equal else (DIRECT if trial.allocation is None else SHARED)
    if sharing == SHARED and form == kinds.SAMPLES:
        raise SettingError(
            f"The propensities of {policy!r} are not known, so an allocation cannot change them. Use samples=None."
        )
    samples = settings.samples if policy.kind == kinds.INFORMATION_DIRECTED else 0
    if law == laws.SAMPLED:
        samples = settings.samples or _SAMPLES
    kind = policy.kind
    if equal:  # one kernel for all policies
        kind, form, settings = kinds.THOMPSON, kinds.EXACT, settings._replace(table=np.empty((0, 0)))
        allocation = Allocation()
    return Packed(
        law, kind, form, sharing, settings, prior, priors, _design(trial, allocation), samples, trial.horizon, arms
    )


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
        parts = [np.array(part) for part in (state.mean, state.root, state.alpha, state.beta)]
        anchors = belief.anchors if belief.discount < 1.0 else np.empty((0, 2, 3))
        return laws.STUDENT, WeightsPrior(*parts, belief.known_noise, False, anchors), none
    first, second = (part.copy() for part in state.pair)
    return belief.law, PairPrior(first, second, belief.discount), np.column_stack([first, second])


def _design(trial: Any, allocation: Allocation) -> TrialDesign:
    stopping = trial.stopping
    if stopping is None:
        never = np.empty(0)
        rules, looks = LookRule(never, never, never, never, 0.0, 0.0, False, 0), np.empty(0, dtype=np.int64)
    else:
        rules = stopping.rule(trial.horizon)
        looks = np.array(stopping.schedule(trial.horizon), dtype=np.int64)
    return TrialDesign(
        looks=looks,
        rules=rules,
        control=-1 if trial.control is None else trial.control,
        limits=allocation.limits(trial.arms),
        burn_in=allocation.burn_in,
        block=allocation.block or 0,
        at_looks=allocation.at_looks,
    )


def _state(packed: Packed, world: TrialWorld) -> TrialState:
    arms, people = packed.arms, packed.horizon
    longest = world.delay if world.delay >= 0 else world.delays.size - 1
    sampled = packed.law == laws.SAMPLED
    return TrialState(
        known=Known(
            np.zeros((arms, 3)),
            np.empty((packed.samples if sampled else 0, arms)),
            np.zeros(arms, dtype=np.int64),
            np.ones(arms, dtype=np.bool_),
            np.zeros(2, dtype=np.int64),
        ),
        mean=np.empty((arms, 1)),
        root=np.empty((arms, 1, 1)),
        alpha=np.empty(arms),
        beta=np.empty(arms),
        one=np.ones(1),
        work=np.empty(1),
        concentration=np.empty((arms, world.values.size)),
        category=np.empty(world.values.size),
        assigned=np.zeros(arms, dtype=np.int64),
        left=np.zeros(arms, dtype=np.int64),
        shares=np.empty(arms),
        wanted=np.empty(arms),
        held=np.empty(arms, dtype=np.bool_),
        head=np.empty(people + longest, dtype=np.int64),
        tail=np.empty(people + longest, dtype=np.int64),
        following=np.empty(people, dtype=np.int64),
        arm=np.empty(people, dtype=np.int64),
        paid=np.empty(people),
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


def play(
    packed: Packed, worlds: Sequence[TrialWorld], realizations: int, seed: int, threads: int, first: int = 0
) -> Ends:
    """Return how so many realizations of every scenario end."""
    ends = np.empty((len(worlds), realizations, END_COLUMNS), dtype=np.int64)
    arms = np.empty((len(worlds), realizations, packed.arms, ARM_COLUMNS))
    kernel = trial_kernel(packed.sharing, packed.kind, packed.form, packed.law)

    def play_block(place: tuple[int, int]) -> None:
        scenario, start = place
        world, stop = worlds[scenario], min(start + BLOCK, realizations)
        block = TrialBlock(np.uint64(seed), np.uint64(scenario), first + start, packed.horizon)
        record = TrialRecord(ends[scenario, start:stop], arms[scenario, start:stop])
        modes = mode_scratch(packed.policy.cap, packed.arms)
        space = TrialSpace(look_space(packed.arms, True), modes, new_report(packed.arms))
        kernel(
            block, world, packed.prior, packed.policy, packed.design, record, _state(packed, world),
            _scratch(packed, world), space,
        )  # fmt: skip

    places = [(scenario, start) for scenario in range(len(worlds)) for start in range(0, realizations, BLOCK)]
    if threads == 1 or len(places) == 1:
        for place in places:
            play_block(place)
    else:
        with ThreadPoolExecutor(max_workers=threads) as pool:
            list(pool.map(play_block, places))
    return Ends(ends, arms)
