"""The loop over realizations and steps on a CPU thread: written once, compiled for each family, policy and law as needed."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from doublesampling.rules import steps
from doublesampling.rules.bundles import Block, Policy, Record, Scratch, Step
from doublesampling.rules.cached import kept
from doublesampling.rules.record import note

# families: the kinds of beliefs that have a step of their own
COUNTS, PAIRS, WEIGHTS, CATEGORIES = range(4)

Kernel = Callable[[Block, Any, Any, Policy, Record, Scratch, Any], None]


@functools.cache
def cpu_kernel(family: int, kind: int, form: int, law: int, variant: int) -> Kernel:
    """Return the kernel that plays a block of realizations.

    ``kind`` and ``form`` are the policy's, ``law`` is that of an arm's expected reward, ``variant`` how Beta arms find p (steps.TRACKED
    and the like) or whether weights forget. They are constants of the compiled code, which is kept on disk for each.
    """

    @kept
    def play(block: Block, world: Any, prior: Any, policy: Policy, record: Record, scratch: Scratch, state: Any) -> None:
        best = 0.0
        for r in range(record.final.size):
            if family == COUNTS:
                best = steps.begin_beta(variant, world, prior, scratch, state)
            elif family == PAIRS:
                steps.begin_pairs(prior, scratch)
            elif family == WEIGHTS:
                steps.begin_weights(prior, scratch, state)
            else:
                best = steps.begin_categories(world, prior, scratch, state)
            regret = observed = 0.0
            for t in range(block.horizon):
                address = (block.seed, block.bandit, np.uint64(block.first + r), np.uint64(t + 1))
                time = t + 1.0
                if family == COUNTS:
                    arm, number, paid = steps.beta_step(kind, form, variant, address, time, world, policy, scratch, state)
                elif family == PAIRS:
                    arm, number, paid, best = steps.pairs_step(kind, form, law, address, time, world, prior, policy, scratch)
                elif family == WEIGHTS:
                    arm, number, paid, best = steps.linear_step(
                        kind, form, law, variant == 1, address, world, prior, policy, scratch, state
                    )
                else:
                    arm, number, paid = steps.categories_step(
                        kind, form, address, time, world, prior, policy, scratch, state
                    )
                mean = scratch.truth[arm]
                regret += best - mean
                observed += best - paid
                step = Step(arm, number, paid, mean == best, regret, observed)
                note(r, t, step, scratch.p, block.columns[t], record)
            record.final[r] = regret

    return play
