"""Views of an experiment that several routes share: its status, its arms' posteriors, and the context they are at."""

import json
import math
from typing import Any, Literal

import numpy as np

from doublesampling import beliefs
from doublesampling.errors import ContextError
from doublesampling.live.contexts import features_of, neutral_context
from doublesampling.live.experiment import Experiment
from doublesampling.live.own_classes import show
from doublesampling.live.queries import activity
from doublesampling.live.queries.decision_pages import recent_contexts
from doublesampling.live.queries.looks import read_looks
from doublesampling.live.session import Session
from doublesampling.live.state import ExperimentState
from doublesampling.live.summary import next_allocation, posterior
from doublesampling.service import blinding
from doublesampling.service.access import Caller
from doublesampling.service.schemas.experiments import (
    ExperimentCounts,
    ExperimentSummary,
    ExperimentView,
    FeatureField,
    LookView,
)

_CONTEXTS = 100  # latest decisions whose mean context is the default
CONTEXT = 'numbers separated by commas, such as 0.5,1, or a record as JSON, such as {"age": 61, "site": "a"}'
"""What a query parameter may say."""
Context = list[float] | dict[str, Any]
ContextSource = Literal["asked", "recent", "ones", "default"]


def experiment_view(experiment: Experiment, caller: Caller, current: ExperimentState | None = None) -> ExperimentView:
    """Return an experiment as the caller may see it, from a bounded number of rows."""
    session, current = experiment.session, current or experiment.state
    hidden = caller.blind and session.design.codes is not None
    return ExperimentView(
        name=session.name,
        status=current.status,
        arms=blinding.arms(current, session.design, caller),
        dimension=getattr(current.belief, "dimension", None),
        features=_features(current.belief),
        binary=is_binary(current.belief),
        units=session.design.units,
        belief=None if hidden else show(session.design.belief),
        policy=None if hidden else show(session.design.policy),
        allocation=None if hidden or session.design.allocation is None else repr(session.design.allocation),
        stopping=None if hidden or session.design.stopping is None else repr(session.design.stopping),
        looks=_looks(session, caller),
        participants=session.design.participants,
        created_at=session.created_at,
        created_by=session.created_by,
        results=None if caller.blind else _counts(session, current),
    )


def _looks(session: Session, caller: Caller) -> list[LookView] | None:
    """Return the looks that were made; a blind caller must not see probabilities."""
    if caller.blind or session.design.stopping is None:
        return None
    return [LookView(**found.to_dict()) for found in read_looks(session)]


def experiment_summary(experiment: Experiment, caller: Caller) -> ExperimentSummary:
    """Return an experiment for a list, as the caller may see it."""
    session, current = experiment.session, experiment.state
    return ExperimentSummary(
        name=session.name,
        arms=[arm.name for arm in blinding.arms(current, session.design, caller)],
        status=current.status,
        created_at=session.created_at,
        created_by=session.created_by,
        last_activity=None if caller.blind else activity.last_activity(session),
        results=None if caller.blind else _counts(session, current),
    )


def _counts(session: Session, current: ExperimentState) -> ExperimentCounts:
    history = activity.history_count(session)
    outcomes = current.belief_state.observations - history
    return ExperimentCounts(
        decisions=current.decisions,
        outcomes=outcomes,
        waiting=max(current.decisions - outcomes, 0),
        history=history,
        version=current.version,
    )


def _features(belief: Any) -> list[FeatureField] | None:
    features = features_of(belief)
    if features is None:
        return None
    described = [field.to_dict() for field in features.fields]
    return [
        FeatureField(
            **{name: found[name] for name in ("name", "kind", "low", "high", "categories") if name in found},
            open=found.get("unknown", "error") != "error",
        )
        for found in described
    ]


def is_binary(belief: Any) -> bool:
    """Return whether rewards are 0 or 1."""
    if isinstance(belief, beliefs.BetaBernoulli):
        return not belief.fractional
    return bool(belief.binary)


def arm_posteriors(
    session: Session, current: ExperimentState, context: Context | None
) -> tuple[list[dict[str, Any]], int]:
    """Return the fields of ``ArmPosterior`` for every arm, and the number of candidates of the next decision."""
    rows = posterior(session.design, current, context)
    shares, candidates = next_allocation(session.design, current, context)
    arms = [
        {
            "arm": i,
            "name": name,
            "active": i in current.active,
            "observations": int(rows["observations"].iloc[i]),
            "posterior_mean": finite(rows["mean"].iloc[i]),
            "sd": finite(rows["sd"].iloc[i]),
            "low": finite(rows["low"].iloc[i]),
            "high": finite(rows["high"].iloc[i]),
            "probability_optimal": float(rows["probability_optimal"].iloc[i]),
            "next_allocation": shares[i],
        }
        for i, name in enumerate(current.arms)
    ]
    return arms, candidates


def parse_context(text: str | None) -> Context | None:
    """Return the context of a query parameter: numbers separated by commas, or a record as JSON."""
    if text is None:
        return None
    if text.lstrip().startswith("{"):
        try:
            found: dict[str, Any] = json.loads(text)
            return found
        except (ValueError, RecursionError):
            raise ContextError('context must be a record as JSON, such as {"age": 61, "site": "a"}.') from None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ContextError("context must be numbers separated by commas, such as 0.5,1.") from None


def choose_context(
    session: Session, current: ExperimentState, asked: Context | None
) -> tuple[Context | None, ContextSource | None]:
    """Return the context at which arms are shown, and its source: asked, recent (a mean), ones or default."""
    features = features_of(current.belief)
    if asked is not None or current.belief.dimension is None:
        return (asked if features is None else session.design.check_context(asked)), None if asked is None else "asked"
    recent = recent_contexts(session, _CONTEXTS)
    if features is not None:
        return features.typical(recent), "recent" if recent else "default"
    if recent:
        return np.mean(recent, axis=0).tolist(), "recent"
    return neutral_context(current.belief), "ones"


def finite(value: Any) -> float | None:
    """Return a number, or None for nan and infinity, which JSON does not have."""
    return float(value) if math.isfinite(value) else None
