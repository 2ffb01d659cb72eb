"""The overview of an experiment: counts, posterior, differences and the next allocation of every arm, in one answer."""

import math
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response
from numpy.typing import NDArray

from doublesampling.errors import ArmError, ContextError
from doublesampling.live import watching
from doublesampling.live.book import Book
from doublesampling.live.experiment import Experiment
from doublesampling.live.memory import Known
from doublesampling.live.outcome_counts import Counts
from doublesampling.live.reading import posterior
from doublesampling.service import findings as m
from doublesampling.service.access import Caller, Reader, TheDesk
from doublesampling.service.answers import Conditional, shared_answer
from doublesampling.service.desk import Desk
from doublesampling.service.experiments import view

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])
FloatArray = NDArray[np.float64]
_ATOMS = 256  # equally probable values that stand for a posterior in a difference
_CONTEXTS = 100  # latest decisions whose mean context is shown where none is asked for
BEST = "best"
"""The reference that is, for every arm, the best of the others."""


@router.get("/overview", response_model=m.Overview, responses={304: {"description": "nothing has changed since"}})
async def overview(
    desk: TheDesk,
    caller: Reader,
    asked: Conditional,
    name: str,
    context: Annotated[str | None, Query(max_length=10_000, description="numbers, separated by commas")] = None,
    reference: Annotated[
        str | None, Query(max_length=500, description="the arm that others are compared with, by name; or `best`")
    ] = None,
) -> Response:
    """Summarise an experiment: counts and posterior of every arm, differences, the next allocation, and progress.

    The answer is shared by everybody who asks, and may be some seconds old while much is written.
    """
    experiment = await desk.experiment(name)
    at = parse_context(context)

    def compute(known: Known) -> m.Overview:
        return summarize(desk, experiment, caller, known, at, reference)

    return await shared_answer(desk, caller, experiment, ("overview", context, reference), compute, asked)


def parse_context(text: str | None) -> list[float] | None:
    """A context as it stands in an address."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ContextError("context must be numbers separated by commas, such as 0.5,1.") from None


def choose_context(book: Book, known: Known, asked: list[float] | None) -> tuple[list[float] | None, str | None]:
    """The context at which arms are shown, and where it comes from: asked, recent (a mean), or ones."""
    if asked is not None or not hasattr(known.belief, "dimension"):
        return asked, None if asked is None else "asked"
    recent = watching.recent_contexts(book, _CONTEXTS)
    if recent:
        return np.mean(recent, axis=0).tolist(), "recent"
    return [1.0] * known.belief.dimension, "ones"


def summarize(
    desk: Desk, experiment: Experiment, caller: Caller, known: Known, asked: list[float] | None, reference: str | None
) -> m.Overview:
    """The overview as it is now."""
    book = experiment._book
    context, source = choose_context(book, known, asked)
    rows = posterior(known, context)
    shares, candidates = watching.next_allocation(book, known, context)
    laws = known.belief.marginals(known.state, context)
    means = rows["mean"].to_numpy()
    chosen = _references(known, means, reference)
    counts, assigned = desk.counts(book, len(known.arms)), desk.assigned(book, len(known.arms))
    differences = _differences(laws, chosen)
    arms = [
        m.ArmResult(
            arm=i,
            name=arm,
            code=book.design.code(i),
            active=i in known.active,
            observations=int(rows["observations"].iloc[i]),
            posterior_mean=finite(means[i]),
            sd=finite(rows["sd"].iloc[i]),
            low=finite(rows["low"].iloc[i]),
            high=finite(rows["high"].iloc[i]),
            probability_optimal=float(rows["probability_optimal"].iloc[i]),
            next_allocation=shares[i],
            difference=differences[i],
            **_counted(counts, assigned, i),
        )
        for i, arm in enumerate(known.arms)
    ]
    return m.Overview(
        experiment=view(experiment, caller, known),
        context=context,
        context_source=source,  # type: ignore[arg-type]
        reference=reference if reference == BEST else known.arms[chosen[0][1]] if chosen else None,
        horizon=getattr(book.design.policy, "horizon", None),
        candidates=candidates,
        mood=mood(shares, known.active),
        arms=arms,
    )


def _references(known: Known, means: FloatArray, reference: str | None) -> list[tuple[int, int]]:
    """Pairs of an arm and the one that it is compared with; without a wish, the first arm that is in."""
    if reference == BEST:
        every = [(i, [other for other in known.active if other != i]) for i in range(len(known.arms))]
        return [(i, max(others, key=lambda arm: means[arm])) for i, others in every if others]
    if reference is not None and reference not in known.arms:
        raise ArmError(f"No arm is called {reference[:100]!r}. Compare with the name of an arm, or with {BEST!r}.")
    control = known.active[0] if reference is None else known.arms.index(reference)
    return [(i, control) for i in range(len(known.arms)) if i != control]


def _differences(laws: Any, pairs: list[tuple[int, int]]) -> dict[int, m.Difference | None]:
    """Posterior mean and central 95 % credible interval of the difference of two arms' expected rewards.

    Each posterior is replaced by equally probable values; arms are independent, so all pairs of values are equally
    probable too.
    """
    atoms = np.asarray(laws.quantile((np.arange(_ATOMS) + 0.5) / _ATOMS))
    means = laws.mean
    found: dict[int, m.Difference | None] = dict.fromkeys(range(atoms.shape[1]))
    for arm, other in pairs:
        if not (np.isfinite(atoms[:, arm]).all() and np.isfinite(atoms[:, other]).all()):
            continue
        apart = np.subtract.outer(atoms[:, arm], atoms[:, other]).ravel()
        better = float((apart > 0.0).mean() + 0.5 * (apart == 0.0).mean())
        ends = [int(level * apart.size) for level in (0.025, 0.975)]
        low, high = np.partition(apart, ends)[ends]
        found[arm] = m.Difference(
            reference=other,
            mean=finite(means[arm] - means[other]),
            low=float(low),
            high=float(high),
            probability_better=better,
        )
    return found


def _counted(counts: Counts | None, assigned: NDArray[np.int64] | None, arm: int) -> dict[str, Any]:
    """The counts of an arm; None while a long log is still being counted."""
    if counts is None or assigned is None:
        return dict.fromkeys(("assigned", "outcomes", "total", "waiting", "share", "history", "voided"))
    given, known = int(assigned[arm] - counts.voided[arm]), int(counts.outcomes[arm])
    every = float(assigned.sum() - counts.voided.sum())
    return {
        "assigned": given,
        "outcomes": known,
        "total": float(counts.total[arm]),
        "waiting": max(given - known, 0),
        "share": given / every if every else None,
        "history": int(counts.history[arm]),
        "voided": int(counts.voided[arm]),
    }


def mood(shares: list[float | None], active: tuple[int, ...]) -> m.Mood:
    """Whether the next decision explores, leans or exploits, from the probability of each arm to come next.

    >>> [mood([p, 1 - p], (0, 1)).word for p in (0.5, 0.8, 0.97)]
    ['exploring', 'leaning', 'exploiting']
    """
    known = [(shares[arm], arm) for arm in active]
    if any(share is None for share, _ in known):
        return m.Mood(word="unknown", arm=None, probability=None)
    most, arm = max((float(share or 0.0), -arm) for share, arm in known)
    even = 1.0 / len(known)
    if most <= even + 0.25 * (1.0 - even):
        return m.Mood(word="exploring", arm=None, probability=most)
    return m.Mood(word="exploiting" if most >= 0.95 else "leaning", arm=-arm, probability=most)


def finite(value: Any) -> float | None:
    """A number, or None where JSON has none for it."""
    return float(value) if math.isfinite(value) else None
