"""``ds.Trial``: the design of a trial without a store."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from doublesampling import beliefs, checks, policies
from doublesampling.allocation import Allocation
from doublesampling.checks import settings, shown
from doublesampling.delays import check_delay
from doublesampling.errors import ArmError, NameTakenError, SettingError
from doublesampling.given import check_belief, check_policy
from doublesampling.stopping import Stopping
from doublesampling.trials import files
from doublesampling.trials.notebook import TrialView

if TYPE_CHECKING:
    from doublesampling.exact.significance import ExactTest


@settings
class Trial(TrialView):
    """The design of a trial: arms, belief, policy, allocation, stopping rule, and the largest number of participants.

    ``arms`` are names. The belief is BetaBernoulli and the policy DoubleSampling where they are left out. ``horizon``
    is the largest number of participants. ``delay`` is the number of further participants after which an outcome is
    known: a number, a law such as {"law": "poisson", "mean": 20}, or a list of probabilities.

    >>> import doublesampling as ds
    >>> trial = Trial(
    ...     arms=["placebo", "10 mg", "20 mg"], belief=ds.BetaBernoulli(arms=3), policy=ds.ThompsonSampling(),
    ...     allocation=ds.Allocation(floor=0.1), stopping=ds.Stopping(looks=50, superiority=0.99), horizon=200,
    ... )
    >>> found = trial.simulate([[0.3, 0.3, 0.3], [0.3, 0.4, 0.6]], realizations=200, seed=1)
    >>> found.probability_superiority.round(1).values.tolist()
    [0.0, 0.4]
    """

    arms: Sequence[str]
    belief: Any = None
    policy: Any = None
    allocation: Allocation | None = None
    stopping: Stopping | None = None
    horizon: int
    delay: Any = 0

    def __post_init__(self) -> None:
        fix = object.__setattr__
        fix(self, "arms", check_names(self.arms))
        if self.belief is None:
            fix(self, "belief", beliefs.BetaBernoulli(arms=len(self.arms)))
        if self.policy is None:
            fix(self, "policy", policies.DoubleSampling(horizon=self.horizon))
        check_belief(self.belief)
        check_policy(self.policy)
        if self.belief.arms != len(self.arms):
            raise ArmError(
                f"The belief has {self.belief.arms} arms, but {len(self.arms)} names were given. Make them agree."
            )
        fix(self, "horizon", checks.integer("horizon", self.horizon, least=1, most=10**7))
        check_delay(self.delay)
        self._check_allocation()
        self._check_stopping()

    def _check_allocation(self) -> None:
        if self.allocation is None:
            return
        if not isinstance(self.allocation, Allocation):
            raise SettingError(f"allocation must be one such as Allocation(floor=0.1), got {shown(self.allocation)}.")
        self.allocation.limits(self.arms)
        if self.allocation.at_looks and self.stopping is None:
            raise SettingError('update="look" renews shares at looks, and this trial has none. Pass stopping=.')

    def _check_stopping(self) -> None:
        if self.stopping is None:
            return
        if not isinstance(self.stopping, Stopping):
            raise SettingError(f"stopping must be one such as Stopping(looks=100), got {shown(self.stopping)}.")
        if getattr(self.belief, "dimension", None) is not None:
            raise SettingError(
                "A stopping rule asks which arm is the best, and under a belief with contexts that depends on the "
                f"context, got {shown(self.belief)}. Use a belief without contexts, or leave stopping out."
            )
        self.stopping.check_for(self.arms, self.horizon)

    @property
    def control(self) -> int | None:
        """The number of the control arm; None where the stopping rule has none."""
        found = -1 if self.stopping is None else self.stopping.control_among(self.arms)
        return None if found < 0 else found

    def simulate(
        self,
        truths: Sequence[Any] | Mapping[str, Any],
        realizations: int = 1000,
        *,
        delay: Any = None,
        dropout: float = 0.0,
        trend: ArrayLike | None = None,
        seed: int = 0,
        threads: int | None = None,
        equal: bool = True,
    ) -> xr.Dataset:
        """Return the operating characteristics of the design, for each of some assumed truths.

        ``truths`` lists scenarios, each with the expected outcome of every arm, or a bandit such as GaussianBandit; a
        dictionary names them. ``delay`` takes the place of the design's own. A share ``dropout`` of the outcomes is
        never known. ``trend`` is how far the expected outcomes move from the first to the last participant of the
        horizon, one number or one per arm. The same seed gives the same numbers on any number of ``threads``.

        Every variable has its Monte Carlo standard error in ``NAME_error``. Variables that end in ``_equal`` are those
        of the same trial with equal allocation to all remaining arms; ``equal=False`` leaves them out.
        """
        from doublesampling.trials.simulate import simulate

        run = {"delay": delay, "dropout": dropout, "trend": trend, "seed": seed, "threads": threads}
        return simulate(self, truths, realizations, equal=equal, **run)

    def exact(self, thetas: Any, *, alpha: float = 0.05, equal: bool = True, threads: int | None = None) -> xr.Dataset:
        """Return the exact operating characteristics of a design with two binary arms; see docs/explanation/exact.md.

        ``thetas`` lists pairs of success probabilities; a dictionary names them. Variables are those of ``simulate``,
        without Monte Carlo errors, and ``rejection_rate``, that of a two-sided z-test of level ``alpha`` at the end.

        >>> import doublesampling as ds
        >>> trial = Trial(arms=["old", "new"], policy=ds.ThompsonSampling(), horizon=60)
        >>> trial.exact([(0.3, 0.3), (0.3, 0.5)]).rejection_rate.round(3).values.tolist()
        [0.037, 0.236]
        """
        from doublesampling.exact.trial import trial_exact

        return trial_exact(self, thetas, alpha=alpha, equal=equal, threads=threads)

    def exact_test(
        self, successes: Any, failures: Any, *, statistic: Any = "z", alternative: str = "two-sided"
    ) -> "ExactTest":
        """Return the exact test that two binary arms are equal, given how this design allocates.

        ``successes`` and ``failures`` are those of both arms at the end. ``alternative="greater"``: the second arm is
        the better one.

        >>> import doublesampling as ds
        >>> trial = Trial(arms=["old", "new"], policy=ds.ThompsonSampling(), horizon=40)
        >>> round(trial.exact_test(successes=(3, 18), failures=(7, 12), alternative="greater").p_value, 3)
        0.081
        """
        from doublesampling.exact.significance import exact_test

        return exact_test(self, successes, failures, statistic=statistic, alternative=alternative)

    def to_dict(self) -> dict[str, Any]:
        """Return the design as plain values, which ``from_dict`` reads."""
        return files.to_dict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the design that ``to_dict`` wrote."""
        return cls(**files.settings_from(content))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the design in a .toml or .json file."""
        return cls.from_dict(files.read(path))

    def write(self, path: str | Path) -> None:
        """Write the design to a .toml or .json file."""
        files.write(self.to_dict(), path)


def check_names(arms: object) -> tuple[str, ...]:
    """Return the names of two or more different arms."""
    if isinstance(arms, (str, int)) or not hasattr(arms, "__iter__"):
        raise ArmError(f'arms must be a list of names, got {shown(arms)}. Write arms=["control", "new"].')
    names = tuple(str(int(name)) if isinstance(name, (int, np.integer)) else name for name in arms)
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > 500 or not name.isprintable():
            raise ArmError(f"The name of an arm must be a text of 1 to 500 characters, got {shown(name)}.")
    if len(names) < 2:
        raise ArmError(f"A trial needs two arms to choose between, got {len(names)}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise NameTakenError(f"Two arms are called {twice!r}. Give each its own name.")
    return names
