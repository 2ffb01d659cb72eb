"""``doublesampling experiment history``: read outcomes from before the experiment from a CSV file."""

import csv
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doublesampling.cli.context import record_from_texts
from doublesampling.errors import ContextError, LogError, NotFoundError
from doublesampling.live.contexts import features_of


@dataclass(frozen=True)
class History:
    """The outcomes in a file, and an idempotency key that is derived from its content."""

    arms: list[str | int]
    rewards: list[float]
    contexts: list[Any] | None
    key: str


def read_history(path: str, arms: Sequence[str], belief: Any, context: Sequence[str] | None) -> History:
    """Return the outcomes of a CSV file with the columns arm and reward, and one per number or field of the context."""
    try:
        content = Path(path).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as problem:
        raise NotFoundError(f"{path!r} cannot be read: {problem.strerror or problem}.") from None
    except UnicodeDecodeError:
        raise LogError(f"{path!r} is not UTF-8 text. Save it as CSV in UTF-8.") from None
    reader = csv.DictReader(text.splitlines())
    columns = [name.strip() for name in reader.fieldnames or []]
    reader.fieldnames = columns
    features = features_of(belief)
    if features is not None and context is None:
        names: Sequence[str] = [field.name for field in features.fields]
    elif features is not None:
        raise LogError("The context of this experiment has fields: name the columns as the fields, without --context.")
    else:
        names = _context_columns(path, columns, getattr(belief, "dimension", None), context)
    for name in ("arm", "reward", *names):
        if name not in columns:
            raise LogError(f"{path!r} has no column {name!r}. It has {', '.join(map(repr, columns)) or 'none'}.")
    found = History([], [], [] if names else None, f"history {hashlib.sha256(content).hexdigest()[:32]}")
    for row in reader:
        line = reader.line_num
        found.arms.append(_arm(path, line, row["arm"], arms))
        found.rewards.append(_number(path, line, "reward", row["reward"]))
        if found.contexts is not None:
            texts = {name: row[name] for name in names}
            numbers = [] if features is not None else [_number(path, line, *each) for each in texts.items()]
            found.contexts.append(numbers if features is None else _record(path, line, features, texts))
    if not found.arms:
        raise LogError(f"{path!r} holds no rows below its headings. Nothing was added.")
    return found


def _context_columns(
    path: str, columns: Sequence[str], dimension: int | None, chosen: Sequence[str] | None
) -> Sequence[str]:
    """Return the columns of the context: the chosen ones, or all others where their number fits."""
    if dimension is None:
        if chosen:
            raise LogError("This experiment has no context. Leave --context out.")
        return []
    names = [name for name in columns if name not in ("arm", "reward")] if chosen is None else chosen
    if len(names) != dimension:
        raise LogError(
            f"The context of this experiment has {dimension} numbers, and {path!r} has {len(names)} columns for it "
            f"({', '.join(map(repr, names)) or 'none'}). Name them in order with --context."
        )
    return names


def _record(path: str, line: int, features: Any, texts: dict[str, str | None]) -> dict[str, Any]:
    try:
        return dict(features.record(record_from_texts(features, texts)))
    except ContextError as problem:
        raise LogError(f"{path!r}, line {line}: {problem} Nothing was added.") from None


def _arm(path: str, line: int, text: str | None, arms: Sequence[str]) -> str | int:
    given = (text or "").strip()
    if given in arms:
        return given
    if given.isdecimal() and int(given) < len(arms):
        return int(given)
    raise LogError(f"{path!r}, line {line}: no arm is called {given!r}. There are {', '.join(map(repr, arms))}.")


def _number(path: str, line: int, column: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise LogError(f"{path!r}, line {line}: {column} must be a number, got {text!r}. Nothing was added.")
    return value
