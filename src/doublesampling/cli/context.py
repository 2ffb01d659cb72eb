"""Contexts on the command line: numbers, or ``field=value`` for experiments whose belief has features."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from doublesampling.errors import ContextError, NotFoundError
from doublesampling.features import Features
from doublesampling.live.contexts import features_of

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_context(belief: Any, words: Sequence[str] | None) -> Any:
    """Return the context that was written as numbers, or as fields such as ``age=61 site=a``."""
    features = features_of(belief)
    if words is None:
        return None
    if features is None:
        try:
            return [float(word) for word in words]
        except ValueError:
            raise ContextError(f"--context takes numbers such as 0.5 1, got {' '.join(words)!r}.") from None
    pairs = [word.partition("=") for word in words]
    for name, sign, _ in pairs:
        if not sign:
            fields = " ".join(f"{field.name}=..." for field in features.fields)
            raise ContextError(f"--context takes fields: {fields}. Got {name!r}.")
    return record_from_texts(features, {name.strip(): text for name, _, text in pairs})


def read_features_file(path: str) -> Features:
    """Return the features that a JSON file holds."""
    try:
        return Features.from_json(Path(path).read_bytes())
    except OSError as problem:
        raise NotFoundError(f"{path!r} cannot be read: {problem.strerror or problem}.") from None


def record_from_texts(features: Features, texts: Mapping[str, str | None]) -> dict[str, Any]:
    """Return a record whose values were written as text, each read as its field's kind wants it."""
    kinds = {field.name: field.to_dict() for field in features.fields}
    return {name: _value(kinds.get(name, {}), (text or "").strip()) for name, text in texts.items()}


def _value(field: Mapping[str, Any], text: str) -> Any:
    if text == "":
        return None  # told as missing, with the field's name
    if field.get("kind") == "boolean":
        return _WORDS.get(text.lower(), text)
    if field.get("kind") == "category":
        return next((each for each in field["categories"] if str(each) == text), text)
    try:
        return float(text)
    except ValueError:
        return text
