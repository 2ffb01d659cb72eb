"""The loop over realizations and steps on a CPU thread, compiled for each step, policy and law as needed."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from doublesampling.rules.bundles import Block, PolicySettings, Record, Scratch, Step
from doublesampling.rules.cached import kept_for
from doublesampling.rules.record import note
from doublesampling.rules.steps import begin_realization, step

Kernel = Callable[..., None]


@functools.cache
def cpu_kernel(step_code: int, kind: int, form: int, law: int) -> Kernel:
    """Return the kernel that plays a block of realizations.

    ``step_code`` is the step that a belief needs (rules/steps.py), ``kind`` and ``form`` are the policy's
    (rules/choose/kinds.py), ``law`` is that of an arm's expected reward (rules/laws.py). They are constants of the
    compiled code, which is kept on disk for each.
    """

    @kept_for(step_code, kind, form, law)
    def play(block: Block, world: Any, prior: Any, policy: PolicySettings, record: Record, scratch: Scratch) -> None:
        for r in range(record.final.size):
            best = begin_realization(step_code, world, prior, scratch)
            regret = observed = 0.0
            for t in range(block.horizon):
                address = (block.seed, block.bandit, np.uint64(block.first + r), np.uint64(t + 1))
                arm, number, paid, best = step(step_code, kind, form, law, address, world, prior, policy, scratch, best)
                mean = scratch.truth[arm]
                regret += best - mean
                observed += best - paid
                done = Step(arm, number, paid, mean == best, regret, observed)
                note(r, t, done, scratch.p, block.columns[t], record)
            record.final[r] = regret

    return play
