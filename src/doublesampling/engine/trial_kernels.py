"""The loop over the participants of simulated trials on a CPU thread, compiled for a law and a policy as needed."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from doublesampling.rules.bundles import Policy, Scratch
from doublesampling.rules.cached import kept_for
from doublesampling.rules.looks.bundles import CONTINUE, MAXIMUM
from doublesampling.rules.looks.look import fill_best, gather, highest, take_look
from doublesampling.rules.optimal_arm.regions import QUICK_BETA
from doublesampling.rules.trials.assignment import draw_from_shares, draw_in_burn_in, fill_shares_or_choose
from doublesampling.rules.trials.bundles import (
    ASSIGNED,
    KNOWN,
    KNOWN_SQUARES,
    KNOWN_TOTAL,
    LOOKS,
    OUTCOME,
    SELECTED,
    SIZE,
    TOTAL,
    TrialBlock,
    TrialDesign,
    TrialRecord,
    TrialSpace,
    TrialState,
    TrialWorld,
)
from doublesampling.rules.trials.outcomes import begin_trial, fill_known, learn, outcome_of, put_off, time_until_known

Kernel = Callable[..., None]


@functools.cache
def trial_kernel(sharing: int, kind: int, form: int, law: int) -> Kernel:
    """Return the kernel that plays a block of trials.

    ``sharing`` is how participants get their arm (rules/trials/bundles.py), ``kind`` and ``form`` are the policy's, and
    ``law`` is that of an arm's expected outcome.
    """

    @kept_for(sharing, kind, form, law)
    def play(
        block: TrialBlock, world: TrialWorld, prior: Any, policy: Policy, design: TrialDesign, record: TrialRecord,
        state: TrialState, scratch: Scratch, space: TrialSpace,
    ) -> None:  # fmt: skip
        known, looks = state.known, design.looks
        span = max(block.horizon - 1, 1)
        for r in range(record.ends.shape[0]):
            begin_trial(law, prior, design.control, state)
            for a in range(known.active.size):
                scratch.starts[a] = np.nan
                for i in range(record.arms.shape[2]):
                    record.arms[r, a, i] = 0.0
            outcome, look, size, waiting, known_total, renew = CONTINUE, 0, 0, 0, 0, True
            for t in range(state.head.size):
                address = (block.seed, block.scenario, np.uint64(block.first + r), np.uint64(t + 1))
                if t < block.horizon:
                    arm = draw_in_burn_in(address, design, state)
                    if arm < 0:
                        if renew:
                            fill_known(law, prior, address, world, state)
                            arm = fill_shares_or_choose(
                                sharing, kind, form, law, address, policy, design, state, scratch, space
                            )
                            renew = not design.at_looks
                        if arm < 0:
                            arm = draw_from_shares(address, design, state)
                    paid = outcome_of(law, world, t / span, arm, address)
                    worth = world.values[int(paid)] if world.values.size > 0 else paid
                    state.arm[t], state.paid[t] = arm, paid
                    state.assigned[arm] += 1
                    record.arms[r, arm, ASSIGNED] += 1.0
                    record.arms[r, arm, TOTAL] += worth
                    size += 1
                    delay = time_until_known(world, address)
                    if delay >= 0:
                        put_off(t, t + delay, state)
                        waiting += 1
                elif waiting == 0:
                    break
                participant = state.head[t]
                while participant >= 0 and outcome == CONTINUE:
                    arm, paid = state.arm[participant], state.paid[participant]
                    learn(law, prior, arm, paid, state)
                    worth = world.values[int(paid)] if world.values.size > 0 else paid
                    record.arms[r, arm, KNOWN] += 1.0
                    record.arms[r, arm, KNOWN_TOTAL] += worth
                    record.arms[r, arm, KNOWN_SQUARES] += worth * worth
                    known_total += 1
                    waiting -= 1
                    if look < looks.size and known_total == looks[look]:
                        fill_known(law, prior, address, world, state)
                        outcome = take_look(law, look, design.rules, QUICK_BETA, known, space.look, space.report)
                        look += 1
                        renew = True
                        for a in range(known.active.size):  # a block with slots of a dropped arm ends
                            if not known.active[a] and state.left[a] > 0:
                                for b in range(known.active.size):
                                    state.left[b] = 0
                    participant = state.following[participant]
                if outcome != CONTINUE:
                    break
            if outcome == CONTINUE:  # all that will ever be known is known
                address = (block.seed, block.scenario, np.uint64(block.first + r), np.uint64(state.head.size + 1))
                fill_known(law, prior, address, world, state)
                if look < looks.size:  # outcomes were lost: the last look is taken without them
                    last = looks.size - 1
                    outcome = take_look(law, last, design.rules, QUICK_BETA, known, space.look, space.report)
                    look += 1
                if outcome == CONTINUE:
                    outcome = MAXIMUM
                    count = gather(known, space.look)
                    fill_best(law, count, QUICK_BETA, known, space.look, space.report.best)
                    known.place[1] = highest(space.report.best)
            ends = record.ends[r]
            ends[OUTCOME], ends[SIZE], ends[SELECTED], ends[LOOKS] = outcome, size, known.place[1], look

    return play
