"""Delay, dropout and allocation of a simulation, checked once; and how they are packed for the kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.allocation import Allocation
from doublesampling.checks import shown
from doublesampling.delays import Delay, check_delay
from doublesampling.engine.families import FAMILIES
from doublesampling.engine.kernels import Kernel
from doublesampling.engine.late_kernels import late_kernel
from doublesampling.engine.packed import PackedPolicy, PackedProblem
from doublesampling.errors import SettingError
from doublesampling.policies import CompiledPolicy
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.propensities import mode_scratch
from doublesampling.rules.late_steps import DIRECT, SHARED, Late
from doublesampling.rules.steps import CARRIED, FRESH, TRACKED


@dataclass(frozen=True, eq=False)
class Lateness:
    """Delay, dropout and allocation of a simulation."""

    delay: Delay
    dropout: float
    allocation: Allocation | None
    settings: dict[str, str]
    """What a result says of them."""

    def check(self, problem: PackedProblem, policy: Any) -> None:
        """Refuse what is played in plain Python, and propensities that are not known."""
        if not problem.compiled or not isinstance(policy, CompiledPolicy):
            raise SettingError(
                "allocation, delay and dropout are simulated for policies, beliefs and bandits of this package. Leave "
                "them out, or your own class."
            )
        if self.allocation is None:
            return
        self.allocation.limits(problem.arms)
        if policy.rule().form == kinds.SAMPLES:
            raise SettingError(
                f"The propensities of {policy!r} are not known, so an allocation cannot change them. Use samples=None."
            )

    def kernel(self, problem: PackedProblem, policy: PackedPolicy) -> Kernel:
        """Return the compiled loop of a problem and a policy."""
        code = FAMILIES[problem.family].step_code(problem, policy, True)
        code = FRESH if code in (TRACKED, CARRIED) else code  # p is found anew: outcomes come in any order
        sharing = DIRECT if self.allocation is None else SHARED
        return late_kernel(code, policy.kind, self.form(problem, policy), problem.law, sharing)

    def form(self, problem: PackedProblem, policy: PackedPolicy) -> int:
        """Return the form of the policy's rule: a table of N for two arms does not give shares."""
        return policy.form_for(problem) if self.allocation is None else policy.policy.rule().form

    def space(self, problem: PackedProblem, policy: PackedPolicy, horizon: int) -> Late:
        """Return the settings and the work space of one thread."""
        arms, allocation = problem.arms, self.allocation or Allocation()

        def whole(size: int) -> NDArray[np.int64]:
            return np.zeros(size, dtype=np.int64)

        return Late(
            delay=self.delay.fixed,
            delays=self.delay.cumulative,
            dropout=self.dropout,
            limits=allocation.limits(arms),
            burn_in=allocation.burn_in,
            block=allocation.block or 0,
            modes=mode_scratch(policy.settings.cap, arms),
            shares=np.empty(arms),
            wanted=np.empty(arms),
            held=np.empty(arms, dtype=np.bool_),
            active=np.ones(arms, dtype=np.bool_),
            assigned=whole(arms),
            left=whole(arms),
            head=whole(horizon),
            tail=whole(horizon),
            following=whole(horizon),
            arm=whole(horizon),
            paid=np.empty(horizon),
            contexts=np.empty((horizon, problem.dimension)),
        )


def make_lateness(allocation: Any, delay: Any, dropout: Any) -> Lateness | None:
    """Return what was asked for, checked; None where nothing was."""
    found, lost = check_delay(delay), checks.within("dropout", dropout, 0.0, 1.0)
    if allocation is not None and not isinstance(allocation, Allocation):
        raise SettingError(f"allocation must be one such as Allocation(floor=0.1), got {shown(allocation)}.")
    if allocation is not None and allocation.at_looks:
        raise SettingError('update="look" is for trials, which have looks. Use ds.Trial, or leave update out.')
    if allocation is None and found.fixed == 0 and lost == 0.0:
        return None
    settings = {"allocation": repr(allocation), "delay": repr(delay), "dropout": repr(dropout)}
    return Lateness(found, lost, allocation, settings)
