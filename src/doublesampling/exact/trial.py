"""Exact operating characteristics of a trial of two binary arms, from one forward pass for all success probabilities."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.beliefs import BetaBernoulli
from doublesampling.errors import SettingError
from doublesampling.exact.characteristics import Characteristics
from doublesampling.exact.forward import Forward, StateLaw
from doublesampling.exact.layers import Threads, check_horizon
from doublesampling.exact.prior import check_prior, check_thetas
from doublesampling.exact.trial_kernels import fill_outcomes
from doublesampling.rules.looks.bundles import EQUIVALENCE, FUTILITY, MAXIMUM, SUPERIORITY, Known, LookRule, look_space

FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.int8]

_NAMES = {
    "probability_superiority": SUPERIORITY,
    "probability_equivalence": EQUIVALENCE,
    "probability_futility": FUTILITY,
    "probability_maximum": MAXIMUM,
}


class Looks(NamedTuple):
    """When a trial looks, what it asks for, and the control (-1 for none)."""

    times: tuple[int, ...]
    rule: LookRule
    control: int


def looks_of(trial: Any) -> Looks | None:
    """Return the looks of a trial, or None where it has no stopping rule."""
    stopping = getattr(trial, "stopping", None)
    if stopping is None:
        return None
    horizon = int(trial.horizon)
    return Looks(tuple(stopping.schedule(horizon)), stopping.rule(horizon), stopping.control_among(arm_names(trial)))


def arm_names(trial: Any) -> Sequence[str]:
    """Return the names of the arms of a trial."""
    arms = getattr(trial, "arms", 2)
    return [str(arm) for arm in range(arms)] if isinstance(arms, int) else [str(arm) for arm in arms]


def check_trial(trial: Any) -> FloatArray:
    """Return the prior of a trial of two binary arms, or say why it has no exact computation."""
    belief = getattr(trial, "belief", None)
    if len(arm_names(trial)) != 2 or not isinstance(belief, BetaBernoulli | None):
        raise SettingError(
            "Exact computations are for two arms with rewards of 0 and 1 (BetaBernoulli), got "
            f"{len(arm_names(trial))} arms and {checks.shown(belief)}. Simulate the trial."
        )
    if getattr(trial, "delay", None):
        raise SettingError("With a delay the posterior does not know all outcomes. Simulate the trial.")
    return check_prior(belief)


class TrialPass:
    """One forward pass of a trial: states in which a look ends it are counted and leave."""

    def __init__(self, trial: Any, threads: int | None = None, until: int | None = None) -> None:
        self.looks = looks_of(trial)
        alike = self.looks is None or self.looks.control < 0
        horizon, allocation = check_horizon(trial.horizon), getattr(trial, "allocation", None)
        last = horizon if until is None else until
        self.forward = Forward(trial.policy, check_trial(trial), last, threads, allocation, alike)

    def run(self, sums: Characteristics) -> None:
        """Add every state in which the trial ends to the sums."""
        law = self.forward.run(lambda law: self._look(law, sums))
        self._look(law, sums)
        for n1, weight in law.blocks():
            n2 = law.time - n1
            sums.add(n1, n2, weight, MAXIMUM, self._leader(n1, n2))

    def _leader(self, n1: int, n2: int) -> FloatArray:
        """Where the second arm has the higher posterior mean; one half where they are equal."""
        prior = self.forward.prior
        m1 = (prior[0, 0] + np.arange(n1 + 1.0))[:, None] / (prior[0].sum() + n1)
        m2 = (prior[1, 0] + np.arange(n2 + 1.0)) / (prior[1].sum() + n2)
        return np.asarray(np.where(np.isclose(m1, m2, rtol=1e-12), 0.5, m2 > m1))

    def _look(self, law: StateLaw, sums: Characteristics) -> None:
        if self.looks is None or law.time not in self.looks.times:
            return
        outcome = self.outcomes(law, self.looks)
        said = StateLaw(law.time, law.mirrored, outcome)  # type: ignore[arg-type]
        for (n1, weight), (_, found) in zip(law.blocks(), said.blocks(), strict=True):
            exchanged = law.mirrored and n1 > law.time - n1
            for code in (SUPERIORITY, EQUIVALENCE, FUTILITY):
                ended = found // 2 == code
                if ended.any():
                    second = (found % 2 == 1) != exchanged
                    sums.add(n1, law.time - n1, weight * ended, code, second)
        law.weight[: outcome.size][outcome > 0] = 0.0

    def drop_ended(self, law: StateLaw) -> None:
        """Take the states in which a look ends the trial out of a law."""
        if self.looks is not None and law.time in self.looks.times:
            law.weight[: law.size][self.outcomes(law, self.looks) > 0] = 0.0

    def outcomes(self, law: StateLaw, looks: Looks) -> ByteArray:
        """Return what a look says in every stored state: see trial_kernels.fill_outcomes."""
        forward, look = self.forward, looks.times.index(law.time)
        outcome = np.zeros(law.size, dtype=np.int8)

        def space() -> Any:
            scratch, place = forward.scratch(), np.array([looks.control, -1])
            counts, active = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.bool_)
            return scratch, Known(scratch.parameters, np.empty((0, 2)), counts, active, place), look_space(2, True)

        with Threads(forward.threads, space) as team:
            team.over(
                law.time,
                law.mirrored,
                lambda layer, space: fill_outcomes(
                    layer, look, looks.rule, forward.prior, forward.corner, law.weight, outcome, *space
                ),
            )
        return outcome


def trial_exact(trial: Any, thetas: Any, *, alpha: float = 0.05, threads: int | None = None) -> xr.Dataset:
    """Return the exact operating characteristics of a trial of two binary arms, a Dataset over the scenarios ``thetas``.

    A trial has policy, horizon and, where it wants them, belief, allocation and stopping. All pairs of success
    probabilities come from one pass over the posterior states. ``rejection_rate`` is that of a two-sided z-test (pooled
    variance) of level ``alpha`` at the end, ``coverage`` that of the Wald interval; both treat the data as if the
    allocation had not looked at them. ``bias`` and ``rmse`` are those of the difference of the observed success rates,
    second arm less first, given that both arms were played (``probability_compared``).
    """
    pairs = check_thetas(thetas)
    alpha = checks.within("alpha", alpha, 1e-9, 0.5)
    sums = Characteristics(pairs, alpha)
    TrialPass(trial, threads).run(sums)
    return _to_dataset(trial, pairs, sums)


def _to_dataset(trial: Any, pairs: FloatArray, sums: Characteristics) -> xr.Dataset:
    gap = pairs[:, 1] - pairs[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, square, covered = (part / sums.compared for part in (sums.effect, sums.effect_squared, sums.covered))
    inferior = pairs < pairs.max(axis=1, keepdims=True)
    found: dict[str, Any] = {name: ("scenario", sums.outcomes[:, code].sum(axis=1)) for name, code in _NAMES.items()}
    found |= {
        "probability_select": (("scenario", "arm"), sums.outcomes.sum(axis=1)),
        "expected_size": ("scenario", sums.size),
        "sd_size": ("scenario", np.sqrt(np.maximum(sums.size_squared - sums.size**2, 0.0))),
        "expected_participants": (("scenario", "arm"), sums.played),
        "expected_share": (("scenario", "arm"), sums.share),
        "expected_successes": ("scenario", sums.successes.sum(axis=1)),
        "expected_failures": ("scenario", sums.size - sums.successes.sum(axis=1)),
        "expected_on_inferior": ("scenario", (sums.played * inferior).sum(axis=1)),
        "rejection_rate": ("scenario", sums.rejected),
        "probability_compared": ("scenario", sums.compared),
        "bias": ("scenario", mean - gap),
        "rmse": ("scenario", np.sqrt(np.maximum(square - 2.0 * gap * mean + gap**2, 0.0))),
        "coverage": ("scenario", covered),
    }
    coordinates = {"arm": list(arm_names(trial)), "theta": (("scenario", "arm"), pairs)}
    notes = {"method": "exact", "horizon": int(trial.horizon), "alpha": sums.alpha, "policy": repr(trial.policy)}
    return xr.Dataset(found, coordinates, notes)
