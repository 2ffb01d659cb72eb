"""What every family shares: problems and policies as the kernels take them, and what a family has to say of itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.engine.kernels import Kernel, cpu_kernel
from doublesampling.rules.bundles import Policy, Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.information_directed import EXTRA_ROWS
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, PANEL_ROWS
from doublesampling.rules.optimal_arm.regions import SURVEY_COLUMNS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OWN = -1
"""The kind of a policy of somebody's own, which is played in plain Python."""


def _pairs(prior: Any) -> FloatArray:
    """Return the two numbers per arm of Beta priors."""
    first, second = (prior.alpha, prior.beta) if hasattr(prior, "alpha") else (prior.first, prior.second)
    return np.column_stack([first, second])


@dataclass(frozen=True, eq=False)
class PackedPolicy:
    """A policy as the rules take it: its kind, its form, its settings, and tables that spare it work.

    ``two_arm_counts`` holds N by the count of the first of two arms, in one column, since one count says both.
    """

    kind: int
    form: int
    settings: Policy
    two_arm_counts: FloatArray
    policy: Any = None
    """The policy itself, for realizations in plain Python."""

    @property
    def compiled(self) -> bool:
        """Whether there is a rule for it; else it is somebody's own."""
        return self.kind != OWN

    def form_for(self, problem: "PackedProblem") -> int:
        """Return the form that a problem needs: where there are two arms, a table of N may do."""
        return kinds.TWO_ARM_TABLE if self._tabled(problem) else self.form

    def settings_for(self, problem: "PackedProblem") -> Policy:
        """Return the settings with the table that a problem needs."""
        if self._tabled(problem):
            return self.settings._replace(table=self.two_arm_counts)
        table = self.policy.table(_pairs(problem.prior)) if self.kind == kinds.GITTINS else None
        return self.settings if table is None else self.settings._replace(table=table)

    def _tabled(self, problem: "PackedProblem") -> bool:
        return self.form == kinds.TABLE and problem.arms == 2 and not problem.samples_itself


@dataclass(frozen=True, eq=False)
class PackedProblem:
    """A bandit and the belief that plays it, as the kernels take them."""

    family: str
    law: int
    arms: int
    dimension: int
    world: Any
    prior: Any
    counts_wins: bool = False  # rewards are 0 and 1, and all of them are remembered alike
    samples_itself: bool = False  # p comes from the belief's own samples, never from the exact p
    belief: Any = None  # the belief itself, for realizations in plain Python
    compiled: bool = True  # whether bandit and belief are ours


@dataclass(frozen=True)
class Family:
    """How one kind of belief is packed and played.

    ``defaults`` maps each bandit it knows to a function from the bandit to the belief that fits it. ``takes`` says
    whether it plays a bandit with a belief; ``pack`` turns them into arrays. ``code`` is the step that a problem and a
    policy need (rules/steps.py; the flag says whether densities may be carried, as on CPUs), ``state`` what the belief
    keeps from step to step beside its marginals, ``samples`` how many posterior samples a policy takes at each.
    """

    name: str
    code: Callable[[PackedProblem, PackedPolicy, bool], int]
    defaults: Mapping[type, Callable[[Any], Any]]
    beliefs: tuple[type, ...]
    takes: Callable[[Any, Any], bool]
    pack: Callable[[Any, Any], PackedProblem]
    state: Callable[[PackedProblem, PackedPolicy, FloatArray], Any]
    samples: Callable[[PackedProblem, PackedPolicy], int] = lambda problem, policy: (
        policy.settings.samples if policy.kind == kinds.INFORMATION_DIRECTED else 0
    )

    def kernel(self, problem: PackedProblem, policy: PackedPolicy) -> Kernel:
        """Return the compiled loop of a problem and a policy."""
        form = policy.form_for(problem)
        return cpu_kernel(self.code(problem, policy, True), policy.kind, form, problem.law)

    def scratch(self, problem: PackedProblem, policy: PackedPolicy) -> Scratch:
        """Return the work space of a problem and a policy; what they do not need is empty."""
        arms = problem.arms
        directed = arms if policy.kind == kinds.INFORMATION_DIRECTED else 0
        parameters = np.zeros((arms, 3))
        return Scratch(
            parameters=parameters,
            priors=np.empty((arms, 2)),
            truth=np.empty(arms),
            p=np.empty(arms),
            votes=np.empty(arms, dtype=np.int64),
            values=np.empty(arms),
            starts=np.empty(arms),
            survey=np.empty((arms, SURVEY_COLUMNS)),
            panel=np.empty((arms + 1, PANEL_ROWS, PANEL_NODES)),
            samples=np.empty((self.samples(problem, policy), arms)),
            tally=np.empty((directed + EXTRA_ROWS, directed)),
            partial=np.empty((directed + 2, PANEL_NODES)),
            state=self.state(problem, policy, parameters),
        )
