"""The loop over steps on a CPU thread where outcomes are late or lost, or shares have limits."""

import functools
from typing import Any

import numpy as np

from doublesampling.engine.kernels import Kernel
from doublesampling.rules.bundles import Block, PolicySettings, Record, Scratch, Step
from doublesampling.rules.cached import kept_for
from doublesampling.rules.late_steps import Late, absorb, begin_late, pay, pick, see
from doublesampling.rules.record import note
from doublesampling.rules.steps import CATEGORIES, FORGETTING_WEIGHTS, WEIGHTS, begin_realization
from doublesampling.rules.trials.outcomes import put_off, time_until_known


@functools.cache
def late_kernel(family: int, kind: int, form: int, law: int, sharing: int) -> Kernel:
    """Return the kernel that plays a block of realizations; the first four as in kernels.cpu_kernel.

    ``sharing`` says whether the policy plays an arm itself, or gives shares to an allocation (rules/late_steps.py).
    """

    @kept_for(family, kind, form, law, sharing)
    def play(
        block: Block, world: Any, prior: Any, policy: PolicySettings, record: Record, scratch: Scratch, late: Late
    ) -> None:
        for r in range(record.final.size):
            best = begin_realization(family, world, prior, scratch)
            begin_late(late)
            regret = observed = 0.0
            for t in range(block.horizon):
                address = (block.seed, block.bandit, np.uint64(block.first + r), np.uint64(t + 1))
                best = see(family, kind, law, sharing, address, world, prior, scratch, best)
                arm, number = pick(kind, form, law, sharing, address, policy, scratch, late)
                paid = pay(family, law, arm, address, world, scratch)
                late.arm[t], late.paid[t] = arm, paid
                worth = paid
                if family == CATEGORIES:
                    worth = world.values[int(paid)]
                if family in (WEIGHTS, FORGETTING_WEIGHTS):
                    for i in range(late.contexts.shape[1]):
                        late.contexts[t, i] = scratch.state.seen[i]
                delay = time_until_known(late.delay, late.delays, late.dropout, address)
                if delay >= 0 and t + delay < block.horizon:  # later outcomes meet no decision
                    put_off(t, t + delay, late.head, late.tail, late.following)
                mean = scratch.truth[arm]
                regret += best - mean
                observed += best - worth
                done = Step(arm, number, worth, mean == best, regret, observed)
                note(r, t, done, scratch.p, block.columns[t], record)
                known = late.head[t]
                while known >= 0:
                    absorb(family, law, late.arm[known], late.paid[known], late.contexts[known], prior, scratch)
                    known = late.following[known]
            record.final[r] = regret

    return play
