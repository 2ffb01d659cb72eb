"""One look of a trial, from the posterior laws of its arms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doublesampling.beliefs import DrawnLaws, Marginals
from doublesampling.beliefs.marginals import address_words
from doublesampling.errors import SettingError
from doublesampling.rules import laws as rule_laws
from doublesampling.rules.looks import entry_points
from doublesampling.rules.looks.bundles import (
    CONTINUE,
    EQUIVALENCE,
    FUTILITY,
    MAXIMUM,
    OUTCOME,
    SUPERIORITY,
    new_batch,
)
from doublesampling.stopping import Stopping

FloatArray = NDArray[np.float64]

OUTCOMES = {
    CONTINUE: "continue",
    SUPERIORITY: "superiority",
    EQUIVALENCE: "equivalence",
    FUTILITY: "futility",
    MAXIMUM: "maximum",
}


@dataclass(frozen=True)
class LookResult:
    """What a look found. Probabilities are (arm), nan for arms that were dropped before, or where not needed."""

    look: int
    """Its number, counted from 0."""
    outcome: str
    """"continue", "superiority", "equivalence" or "futility". It is never empty: ask ``stops``, not ``if outcome``."""
    dropped: tuple[int, ...]
    """Arms that this look dropped."""
    active: tuple[int, ...]
    """Arms that remain."""
    control: int | None
    """The control from now on."""
    promoted: bool
    """Whether the control is an arm that took the place of the first one."""
    selected: int | None
    """The superior arm; the control after futility; None while the trial continues."""
    probability_best: FloatArray
    """P(best) among the arms that were in when the look began."""
    probability_best_remaining: FloatArray
    """P(best) among the arms that remain."""
    probability_better: FloatArray
    """P(better than the control)."""
    probability_equivalence: float
    """P(all remaining arms lie within the margin)."""
    probability_futility: float
    """P(no arm beats the control by the margin)."""

    @property
    def stops(self) -> bool:
        """Whether the trial ends here."""
        return self.outcome != "continue"


def evaluate_look(
    stopping: Stopping,
    laws: Marginals | DrawnLaws,
    counts: Sequence[int] | NDArray[np.int64],
    *,
    look: int = 0,
    active: Sequence[int] | None = None,
    control: int | None = None,
    promoted: bool = False,
    seed: int = 0,
) -> LookResult:
    """Return what a look says, from the posterior laws of all arms and the number of known outcomes of each.

    ``active`` are the arms that remain, all where it is left out; ``control`` the number of the control among all arms,
    and ``promoted`` whether an earlier look gave it that place.
    Probabilities are exact by quadrature where the laws have densities, and come from ``laws.many`` draws elsewhere, at
    a random address of the seed and the look.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0] * 40 + [1] * 40, rewards=[0] * 30 + [1] * 50)
    >>> found = evaluate_look(Stopping(looks=80, superiority=0.99), belief.marginals(state), state.counts)
    >>> found.outcome, found.selected
    ('superiority', 1)
    """
    arms = laws.arms
    remaining = np.zeros(arms, dtype=np.bool_)
    remaining[list(range(arms)) if active is None else list(active)] = True
    known = new_batch(1, arms, 0 if isinstance(laws, Marginals) else laws.many)
    if isinstance(laws, Marginals):
        law = _law_of(laws.law)
        known.parameters[0] = laws.parameters
    else:
        law = rule_laws.SAMPLED
        known.draws[0] = laws.draws_at(laws.many, address_words(seed, look + 1))
    known.counts[0], known.active[0] = counts, remaining
    known.place[0] = -1 if control is None else control, -1, promoted
    entry_points.look_at(law, stopping.rule_at(look), known)
    after, selected = (None if place < 0 else int(place) for place in known.place[0, :2])
    return LookResult(
        look=look,
        outcome=OUTCOMES[int(known.progress[0, OUTCOME])],
        dropped=tuple(int(a) for a in np.flatnonzero(remaining & ~known.active[0])),
        active=tuple(int(a) for a in np.flatnonzero(known.active[0])),
        control=after,
        promoted=bool(known.place[0, 2]),
        selected=selected,
        probability_best=known.best[0],
        probability_best_remaining=known.remaining[0],
        probability_better=known.better[0],
        probability_equivalence=float(known.margins[0, 0]),
        probability_futility=float(known.margins[0, 1]),
    )


def _law_of(law: int) -> int:
    if law == rule_laws.LOGISTIC:
        raise SettingError(
            "A stopping rule asks which arm is the best, and under a logistic belief that depends on the context. Use "
            "BetaBernoulli."
        )
    return law
