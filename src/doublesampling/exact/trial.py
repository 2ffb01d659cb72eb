"""Exact operating characteristics of a trial of two binary arms: one forward pass for all success probabilities."""

import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from doublesampling import __version__, checks
from doublesampling.beliefs import BetaBernoulli
from doublesampling.errors import SettingError
from doublesampling.exact.characteristics import Characteristics, describe
from doublesampling.exact.forward import Forward, StateLaw, check_allocation
from doublesampling.exact.kernels import Layer
from doublesampling.exact.layers import Threads, check_horizon
from doublesampling.exact.prior import check_prior, check_thetas, name_scenarios
from doublesampling.exact.trial_kernels import outcome_kernel
from doublesampling.rules.looks.bundles import EQUIVALENCE, FUTILITY, MAXIMUM, SUPERIORITY, Known, LookRule, look_space

FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.int8]


class Looks(NamedTuple):
    """When a trial looks, what it asks for, and the control (-1 for none)."""

    times: tuple[int, ...]
    rule: LookRule
    control: int

    def rule_at(self, time: int) -> LookRule:
        """Return the thresholds after so many outcomes; nan where there is no look."""
        found: dict[str, Any] = {}
        for name in ("superiority", "inferiority", "equivalence", "futility"):
            values = getattr(self.rule, name)
            found[name] = np.array([values[self.times.index(time)] if time in self.times else math.nan])
        return self.rule._replace(**found)


_NEVER = np.array([math.nan])
_NO_LOOKS = Looks((), LookRule(_NEVER, _NEVER, _NEVER, _NEVER, 0.0, 0.0, False, 0), -1)


def looks_of(trial: Any) -> Looks:
    """Return the looks of a trial."""
    if trial.stopping is None:
        return _NO_LOOKS
    stopping, horizon = trial.stopping, trial.horizon
    return Looks(tuple(stopping.schedule(horizon)), stopping.rule(horizon), stopping.control_among(trial.arms))


def check_trial(trial: Any) -> FloatArray:
    """Return the prior of a trial of two binary arms, or say why it has no exact computation."""
    if len(trial.arms) != 2 or not isinstance(trial.belief, BetaBernoulli):
        raise SettingError(
            "Exact computations are for two arms with rewards of 0 and 1 (BetaBernoulli), got "
            f"{len(trial.arms)} arms and {checks.shown(trial.belief)}. Simulate the trial."
        )
    if trial.delay:
        raise SettingError("With a delay the posterior does not know all outcomes. Simulate the trial.")
    return check_prior(trial.belief)


class TrialPass:
    """One forward pass of a trial: states in which a look ends it are counted and leave.

    ``until`` is where it ends, the horizon unless said. With ``equal``, both arms are played alike.
    """

    def __init__(
        self, trial: Any, threads: int | None = None, *, until: int | None = None, equal: bool = False
    ) -> None:
        self.looks, self.horizon, prior = looks_of(trial), check_horizon(trial.horizon), check_trial(trial)
        policy, allocation = trial.policy, trial.allocation
        check_allocation(allocation, trial.arms)
        if equal:
            policy = allocation = None
        alike = self.looks.control < 0
        last = self.horizon if until is None else until
        self.forward = Forward(policy, prior, last, threads, allocation, mirrored=alike, arms=trial.arms)

    def run(self, sums: Characteristics) -> None:
        """Add every state in which the trial ends to the sums."""
        self._count(self.forward.run(lambda law: self._count(law, sums)), sums)

    def _count(self, law: StateLaw, sums: Characteristics) -> None:
        """Add the states in which a look, or the horizon, ends the trial, and take them out."""
        if law.time not in self.looks.times and law.time < self.horizon:
            return
        outcome = self.outcomes(law)
        said = StateLaw(law.time, law.mirrored, outcome)  # type: ignore[arg-type]
        for (n1, weight), (_, found) in zip(law.blocks(), said.blocks(), strict=True):
            second = 0.5 * (found % 3 == 2) + (found % 3 == (0 if law.exchanged(n1) else 1))
            for code in (SUPERIORITY, EQUIVALENCE, FUTILITY, MAXIMUM):
                ended = found // 3 == code
                if ended.any():
                    sums.add(n1, law.time - n1, weight * ended, code, second)
        law.weight[: outcome.size][outcome > 0] = 0.0

    def drop_ended(self, law: StateLaw) -> None:
        """Take the states in which a look ends the trial out of a law."""
        if law.time in self.looks.times:
            law.weight[: law.size][self.outcomes(law) > 0] = 0.0

    def outcomes(self, law: StateLaw) -> ByteArray:
        """Return what a look says in every stored state: see trial_kernels.fill_outcomes."""
        forward, last, rules = self.forward, law.time >= self.horizon, self.looks.rule_at(law.time)
        outcome = np.zeros(law.size, dtype=np.int8)

        def space() -> Any:
            scratch, place = forward.scratch(), np.array([self.looks.control, -1])
            counts, active = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.bool_)
            return scratch, Known(scratch.parameters, np.empty((0, 2)), counts, active, place), look_space(2, True)

        fill = outcome_kernel(int(not np.isnan([rules.equivalence[0], rules.futility[0]]).all()))

        def look(layer: Layer, space: Any) -> None:
            fill(layer, last, rules, forward.prior, forward.corner, law.weight, outcome, *space)

        with Threads(forward.threads, space) as team:
            team.over(law.time, law.mirrored, look)
        return outcome


def trial_exact(
    trial: Any, thetas: Any, *, alpha: float = 0.05, equal: bool = True, threads: int | None = None
) -> xr.Dataset:
    """Return the exact operating characteristics of a trial of two binary arms, for pairs of success probabilities.

    All pairs come from one pass over the posterior states. Names are those of ``Trial.simulate``, without Monte Carlo
    errors. ``rejection_rate`` is that of a two-sided z-test (pooled variance) of level ``alpha`` at the end;
    ``naive_coverage`` that of the Wald interval of level 1 - alpha. Both treat the data as if the allocation had not
    looked at them. Estimates are given that the arms that they compare were played. Names that end in ``_equal`` are
    those of the same trial with equal allocation; ``equal=False`` leaves them out.
    """
    check_trial(trial)
    names = name_scenarios(thetas)
    pairs = check_thetas([np.asarray(getattr(pair, "probabilities", pair), dtype=float) for pair in names.values()])
    alpha = checks.within("alpha", alpha, 1e-9, 0.5)
    found: dict[str, Any] = {"truth": (("scenario", "arm"), pairs)}
    for suffix in ("", "_equal") if checks.flag("equal", equal) else ("",):
        sums = Characteristics(pairs, alpha)
        TrialPass(trial, threads, equal=bool(suffix)).run(sums)
        described = describe(sums, trial.control or 0)
        found |= {f"{name}{suffix}": part for name, part in described.items()}
    return xr.Dataset(
        found,
        coords={"scenario": list(names), "arm": list(trial.arms)},
        attrs={
            "method": "exact",
            "trial": repr(trial),
            "alpha": alpha,
            "created_with": f"doublesampling {__version__}",
        },
    )
