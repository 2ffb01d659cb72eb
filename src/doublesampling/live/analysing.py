"""Estimates and confidence sequences of a live experiment, valid although its policy chose the data."""

import json
from collections.abc import Sequence as Listed
from typing import TYPE_CHECKING, Any

from doublesampling import checks
from doublesampling.errors import ArmError
from doublesampling.live.queries.looks import LookRecord, read_looks
from doublesampling.live.session import Session

if TYPE_CHECKING:
    from doublesampling.exact.significance import ExactTest
    from doublesampling.inference import Analysis, Sequence
    from doublesampling.live.sequence_cache import SequenceCache

Contrast = int | str | Listed[int | str]
_FOLLOWED = 100  # sequences that an open experiment keeps


class Analysed:
    """The analyses of an experiment; ``Experiment`` inherits them."""

    session: Session
    _followed: dict[tuple[Any, ...], "SequenceCache"]

    @property
    def looks(self) -> Listed[LookRecord]:
        """The looks of the stopping rule that were made, each with its probabilities, thresholds and verdict."""
        return read_looks(self.session)

    def analyse(
        self, contrast: Contrast = (1, 0), method: str = "aw-aipw", level: float = 0.95, **settings: Any
    ) -> "Analysis":
        """Estimate the mean reward of an arm, or the difference of two, with a confidence interval.

        ``contrast`` names two arms, such as ("20 mg", "placebo"), or one. See ``ds.analyse`` for the methods and the
        other settings. Decisions whose outcome is not known are counted and left out; history is not used.
        """
        from doublesampling.inference import analyse

        return analyse(self, contrast, method, level, **settings)

    def exact_test(self, *, statistic: Any = "z", alternative: str = "two-sided", late: str = "refuse") -> "ExactTest":
        """Return the exact test that two binary arms are equal, given how this experiment's own design allocates.

        The counts are those of the stored outcomes; the p-value is that of ``ds.Trial.exact_test`` for the same design
        and counts. ``alternative="greater"``: the second arm is the better one. It assumes that every decision knew the
        outcomes of all before it, and is refused where one did not; ``late="ignore"`` computes it as if. ``.assumes``
        says what else it rests on.
        """
        from doublesampling.live.exact_testing import run_exact_test

        return run_exact_test(self.session, statistic=statistic, alternative=alternative, late=late)

    def sequence(
        self,
        contrast: Contrast = (1, 0),
        level: float = 0.95,
        *,
        method: str = "asymptotic",
        optimal_at: float | None = None,
        bounds: tuple[float, float] = (0.0, 1.0),
    ) -> "Sequence":
        """Return a confidence sequence: intervals that hold together, however often anyone looks.

        Outcomes count in the order in which they were told; only those after the summary in the store are read.
        ``optimal_at`` is by default the policy's horizon, or 500. See ``ds.ConfidenceSequence`` for the methods. The
        result has at most 1025 points.
        """
        from doublesampling.inference import ConfidenceSequence, Sequence
        from doublesampling.live.sequence_cache import SequenceCache, to_arrays

        current = self.session.read_state()
        arms = _indices(contrast, current.arms)
        at = float(self.session.design.usual_horizon) if optimal_at is None else optimal_at
        key = (arms, float(level), method, float(at), tuple(map(float, bounds)))

        def make(count: int) -> ConfidenceSequence:
            return ConfidenceSequence(count, arms, level, method=method, optimal_at=at, bounds=bounds)

        if key not in self._followed:
            make(len(current.arms))  # refuses wrong settings before anything is read
            self._followed[key] = SequenceCache(self.session, json.dumps(key), make)
            while len(self._followed) > _FOLLOWED:
                del self._followed[next(iter(self._followed))]
        points, reason = self._followed[key].read(current.arms)
        outcomes, estimate, low, high = to_arrays(points)
        title = " - ".join(current.arms[arm] for arm in arms)
        pending = current.decisions - int(outcomes[-1])
        return Sequence(estimate, low, high, outcomes, method, level, title, pending, 0, reason)


def _indices(contrast: Contrast, names: tuple[str, ...]) -> tuple[int, ...]:
    """The arms of a contrast by index."""
    given = (contrast,) if isinstance(contrast, int | str) else tuple(contrast)
    found = []
    for each in given:
        if isinstance(each, str) and each not in names:
            raise ArmError(f"There is no arm {each!r}. The arms are {', '.join(map(repr, names))}.")
        found.append(names.index(each) if isinstance(each, str) else checks.arm_index(each, len(names)))
    return tuple(found)
