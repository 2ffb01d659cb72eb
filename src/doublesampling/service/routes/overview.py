"""The overview of an experiment: counts, posterior, differences and next allocation of every arm, in one response."""

import math
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response
from numpy.typing import NDArray

from doublesampling import beliefs
from doublesampling.errors import ArmError
from doublesampling.live.experiment import Experiment
from doublesampling.live.queries.outcome_counts import Counts
from doublesampling.live.state import ExperimentState
from doublesampling.service.access import Caller, Reader, State
from doublesampling.service.responses import UNCHANGED, Conditional, Question, cached_response
from doublesampling.service.schemas.results import AllocationMood, ArmResult, Difference, Overview
from doublesampling.service.state import ServiceState
from doublesampling.service.views import (
    CONTEXT,
    Context,
    arm_posteriors,
    choose_context,
    experiment_view,
    finite,
    parse_context,
)

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])
FloatArray = NDArray[np.float64]
_QUANTILES = 256  # equally probable values that represent a posterior in a difference
BEST = "best"
"""The reference that is, for every arm, the best of the other arms."""


@router.get("/overview", response_model=Overview, responses=UNCHANGED)
async def overview(
    state: State,
    caller: Reader,
    asked: Conditional,
    name: str,
    context: Annotated[str | None, Query(max_length=10_000, description=CONTEXT)] = None,
    reference: Annotated[
        str | None, Query(max_length=500, description="the arm that others are compared with, by name; or `best`")
    ] = None,
) -> Response:
    """Summarise an experiment: counts and posterior of every arm, differences, the next allocation, and progress.

    The response is shared by all callers, and may be some seconds old while many rows are written.
    """
    experiment = await state.experiment(name)
    at = parse_context(context)

    def compute(current: ExperimentState) -> Overview:
        return summarize(state, experiment, caller, current, at, reference)

    question = Question(("overview", context, reference))
    return await cached_response(state, caller, experiment, question, compute, asked)


def summarize(
    state: ServiceState,
    experiment: Experiment,
    caller: Caller,
    current: ExperimentState,
    asked: Context | None,
    reference: str | None,
) -> Overview:
    """Return the overview of the current state."""
    session = experiment.session
    context, source = choose_context(session, current, asked)
    arms, candidates = arm_posteriors(session, current, context)
    laws = current.belief.marginals(current.belief_state, session.design.check_context(context))
    chosen = _references(current, laws.mean, reference)
    counts = state.counters.outcomes(session, len(current.arms))
    assigned = state.counters.assigned(session, len(current.arms))
    apart = differences(laws, chosen)
    return Overview(
        experiment=experiment_view(experiment, caller, current),
        context=context,
        context_source=source,
        reference=reference if reference == BEST else current.arms[chosen[0][1]] if chosen else None,
        horizon=session.design.horizon,
        candidates=candidates,
        mood=mood([arm["next_allocation"] for arm in arms], current.active),
        arms=[
            ArmResult(code=session.design.code(i), difference=apart[i], **arm, **_counted(counts, assigned, i))
            for i, arm in enumerate(arms)
        ],
    )


def _references(current: ExperimentState, means: FloatArray, reference: str | None) -> list[tuple[int, int]]:
    """Return pairs of an arm and its reference; the default reference is the first active arm."""
    if reference == BEST:
        every = [(i, [other for other in current.active if other != i]) for i in range(len(current.arms))]
        return [(i, max(others, key=lambda arm: means[arm])) for i, others in every if others]
    if reference is not None and reference not in current.arms:
        raise ArmError(f"No arm is called {reference[:100]!r}. Compare with the name of an arm, or with {BEST!r}.")
    control = current.active[0] if reference is None else current.arms.index(reference)
    return [(i, control) for i in range(len(current.arms)) if i != control]


def differences(laws: Any, pairs: list[tuple[int, int]]) -> dict[int, Difference | None]:
    """Return posterior mean and central 95 % credible interval of the difference of each pair of arms.

    Each posterior is replaced by equally probable quantiles; arms are independent, so all pairs of quantiles are
    equally probable too. Where arms depend on each other, the law of their difference is known.
    """
    if isinstance(laws, beliefs.JointStudent):
        return dict.fromkeys(range(laws.arms)) | {arm: _exact_difference(laws, arm, other) for arm, other in pairs}
    quantiles = np.asarray(laws.quantile((np.arange(_QUANTILES) + 0.5) / _QUANTILES))
    means = laws.mean
    found: dict[int, Difference | None] = dict.fromkeys(range(quantiles.shape[1]))
    for arm, other in pairs:
        if not (np.isfinite(quantiles[:, arm]).all() and np.isfinite(quantiles[:, other]).all()):
            continue
        apart = np.subtract.outer(quantiles[:, arm], quantiles[:, other]).ravel()
        better = float((apart > 0.0).mean() + 0.5 * (apart == 0.0).mean())
        ends = [int(level * apart.size) for level in (0.025, 0.975)]
        low, high = np.partition(apart, ends)[ends]
        found[arm] = Difference(
            reference=other,
            mean=finite(means[arm] - means[other]),
            low=float(low),
            high=float(high),
            probability_better=better,
        )
    return found


def _exact_difference(laws: beliefs.JointStudent, arm: int, other: int) -> Difference | None:
    law = laws.difference(arm, other)
    low, high = law.quantile([0.025, 0.975])[:, 0]
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    better = float(laws.difference(other, arm).cdf(0.0)[0])
    return Difference(
        reference=other, mean=finite(law.mean[0]), low=float(low), high=float(high), probability_better=better
    )


def _counted(counts: Counts | None, assigned: NDArray[np.int64] | None, arm: int) -> dict[str, Any]:
    """Return the counts of an arm; None for each while a long log is still being counted."""
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


def mood(shares: list[float | None], active: tuple[int, ...]) -> AllocationMood:
    """Return whether the next decision explores, leans or exploits, from each arm's probability of being chosen.

    >>> [mood([p, 1 - p], (0, 1)).word for p in (0.5, 0.8, 0.97)]
    ['exploring', 'leaning', 'exploiting']
    """
    known = [(shares[arm], arm) for arm in active]
    if any(share is None for share, _ in known):
        return AllocationMood(word="unknown", arm=None, probability=None)
    most, arm = max((float(share or 0.0), -arm) for share, arm in known)
    even = 1.0 / len(known)
    if most <= even + 0.25 * (1.0 - even):
        return AllocationMood(word="exploring", arm=None, probability=most)
    return AllocationMood(word="exploiting" if most >= 0.95 else "leaning", arm=-arm, probability=most)
