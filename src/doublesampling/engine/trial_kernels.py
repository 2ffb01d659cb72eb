"""The loop over the participants of simulated trials on a CPU thread, compiled for a law and a policy as needed."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from doublesampling.rules.bundles import PolicySettings, Scratch
from doublesampling.rules.cached import kept_for
from doublesampling.rules.looks.bundles import (
    DUE,
    FINAL,
    KNOWN_SO_FAR,
    LOOKS,
    POINTER,
    RENEW,
    RUNNING,
    STATUS,
    TICK,
    WAITING,
    Batch,
    Known,
)
from doublesampling.rules.trials.assignment import (
    draw_from_shares,
    draw_in_burn_in,
    end_block_of_dropped,
    fill_shares_or_choose,
    share_equally,
)
from doublesampling.rules.trials.bundles import (
    TrialBlock,
    TrialDesign,
    TrialSpace,
    TrialState,
    TrialWorld,
)
from doublesampling.rules.trials.outcomes import begin_trial, enrol, fill_known, learn_next

NEXT_TICK = -2  # the pointer between ticks; -1 where no more outcomes become known in this one

Kernel = Callable[..., None]


@functools.cache
def trial_kernel(sharing: int, kind: int, form: int, law: int) -> Kernel:
    """Return the kernel that plays trials until a look is due or all outcomes are known.

    ``sharing`` is how participants get their arm (rules/trials/bundles.py), ``kind`` and ``form`` are the policy's, and
    ``law`` is that of an arm's expected outcome. A trial at tick 0 begins. Looks are compiled apart, once for each law.
    """

    @kept_for(sharing, kind, form, law)
    def advance(
        block: TrialBlock, world: TrialWorld, prior: Any, policy: PolicySettings, design: TrialDesign, batch: Batch,
        states: TrialState, scratch: Scratch, space: TrialSpace,
    ) -> None:  # fmt: skip
        looks, span = design.looks, max(block.horizon - 1, 1)
        for r in range(batch.progress.shape[0]):
            at = batch.progress[r]
            if at[STATUS] != RUNNING:
                continue
            known = Known(batch.parameters[r], batch.draws[r], batch.counts[r], batch.active[r], batch.place[r])
            state = TrialState(
                states.mean[r], states.root[r], states.alpha[r], states.beta[r], states.concentration[r],
                states.record[r], states.assigned[r], states.left[r], states.shares[r], states.head[r],
                states.tail[r], states.following[r], states.arm[r], states.paid[r],
            )  # fmt: skip
            if at[TICK] == 0 and at[LOOKS] == 0:
                begin_trial(law, prior, design.control, known, state)
                at[POINTER], at[RENEW] = NEXT_TICK, 1
            end_block_of_dropped(known.active, state.left)
            while at[STATUS] == RUNNING:
                t = at[TICK]
                address = (block.seed, block.scenario, np.uint64(block.first + r), np.uint64(t + 1))
                if at[POINTER] == NEXT_TICK:
                    if t >= block.horizon and at[WAITING] == 0:  # all that will ever be known is known
                        fill_known(law, prior, address, world, known, state, space)
                        at[STATUS] = FINAL
                        break
                    if t < block.horizon:
                        arm = draw_in_burn_in(address, design.burn_in, state.assigned, known.active, space.wanted)
                        if design.equal:
                            share_equally(known.active, state.shares)
                        elif at[RENEW] == 1 and (arm < 0 or design.at_looks):  # a look renews in a burn-in, too
                            fill_known(law, prior, address, world, known, state, space)
                            chosen = fill_shares_or_choose(
                                sharing, kind, form, law, address, policy, known, design.limits, scratch, space
                            )
                            if arm < 0:
                                arm = chosen
                            at[RENEW] = 0 if design.at_looks else 1
                            for a in range(known.active.size):
                                state.shares[a] = space.shares[a]
                        if arm < 0:
                            arm = draw_from_shares(address, design.block, state.shares, state.left, space.wanted)
                        enrol(law, world, t / span, arm, address, at, state)
                    at[POINTER] = state.head[t]
                while at[POINTER] >= 0 and at[STATUS] == RUNNING:
                    learn_next(law, prior, world, known, at, state, space)
                    if at[LOOKS] < looks.size and at[KNOWN_SO_FAR] == looks[at[LOOKS]]:
                        fill_known(law, prior, address, world, known, state, space)
                        at[STATUS] = DUE
                if at[POINTER] < 0:
                    at[TICK] += 1
                    at[POINTER] = NEXT_TICK

    return advance
