"""What a family of beliefs says of itself: which bandits it plays, how they are packed, and which step plays them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.engine.kernels import Kernel, cpu_kernel
from doublesampling.engine.packed import PackedPolicy, PackedProblem
from doublesampling.rules.bundles import Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.information_directed import EXTRA_ROWS
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, PANEL_ROWS
from doublesampling.rules.optimal_arm.regions import SURVEY_COLUMNS

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """How one kind of belief is packed and played.

    ``defaults`` maps each bandit it knows to a function from the bandit to the belief that fits it. ``takes`` says
    whether it plays a bandit with a belief; ``pack`` turns them into arrays. ``step_code`` says which step a problem
    and a policy need (rules/steps.py; the flag says whether densities may be carried, as on CPUs), ``state`` what the
    belief keeps from step to step beside its marginals, ``samples`` how many posterior samples a policy takes at each.
    """

    name: str
    step_code: Callable[[PackedProblem, PackedPolicy, bool], int]
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
        return cpu_kernel(self.step_code(problem, policy, True), policy.kind, form, problem.law)

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
