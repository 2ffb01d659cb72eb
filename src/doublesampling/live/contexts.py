"""Contexts of a live experiment: numbers, or records where the belief has features; checked, stored and read back."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from doublesampling import checks
from doublesampling.errors import ContextError
from doublesampling.features import Features


def features_of(belief: Any) -> Features | None:
    """Return the features of a belief; None where its contexts are numbers, or where it has none."""
    found = getattr(belief, "features", None)
    return found if isinstance(found, Features) else None


def check_context(belief: Any, context: Any, *, own: bool) -> Any:
    """Return a context as beliefs and policies get it: what a replay reads from the store.

    With features it is a record of plain values. Beliefs of this package check numbers themselves; ``own`` tells that
    belief or policy are not of this package.
    """
    features = features_of(belief)
    if context is None or (features is None and not own):
        return context
    if features is not None:
        return features.record(context)
    given = checks.array("context", context, error=ContextError)
    wanted = belief.dimension
    if wanted is not None and given.shape != (wanted,):
        raise ContextError(f"context must have {wanted} numbers, got shape {given.shape}.")
    return given


def context_to_json(belief: Any, context: Any) -> str:
    """Return a context as it is stored."""
    features = features_of(belief)
    if features is not None:
        return json.dumps(features.record(context), allow_nan=False, ensure_ascii=False)
    return json.dumps(checks.array("context", context, error=ContextError).tolist())


def plain_contexts(belief: Any, contexts: Any) -> list[Any]:
    """Return contexts in plain values, for JSON: records, or lists of numbers."""
    features = features_of(belief)
    if features is not None:
        return list(features.records(contexts))
    found: list[Any] = checks.array("contexts", contexts, error=ContextError).tolist()
    return found


def context_from_json(text: str | None) -> Any:
    """Return a stored context: a record, an array of numbers, or None."""
    found = None if text is None else json.loads(text)
    return np.array(found) if isinstance(found, list) else found


def contexts_from_json(texts: Sequence[str | None]) -> Any:
    """Return the stored contexts of several outcomes: records, an array (outcome, entry), or None."""
    if not texts or texts[0] is None:
        return None
    found = [json.loads(text or "null") for text in texts]
    return found if isinstance(found[0], dict) else np.array(found)


def neutral_context(belief: Any) -> Any:
    """Return a context to show an experiment at that has none yet: ones, or a typical record; None without contexts."""
    features = features_of(belief)
    if features is not None:
        return features.typical()
    return [1.0] * belief.dimension if belief.dimension else None


def each_context(belief: Any, contexts: Any) -> Any:
    """Return contexts of which each can be taken by its number; the rows of a table become records."""
    features = features_of(belief)
    if features is None or not hasattr(contexts, "columns"):
        return contexts
    return features.records(contexts)
