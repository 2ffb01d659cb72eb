"""Frozen dataclasses that are made in one step: a decision makes several, and each would cost a call per field."""

from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def quick_record(cls: type[T]) -> type[T]:
    """Return a frozen dataclass, compared by identity, whose ``__init__`` fills its dictionary at once.

    The usual one calls ``object.__setattr__`` for every field. Assignments are refused as in any frozen dataclass.

    >>> @quick_record
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0).y
    0.0
    """
    made: Any = dataclass(frozen=True, eq=False)(cls)
    every = fields(made)
    space: dict[str, Any] = {f"_default_{f.name}": f.default for f in every}
    given = ", ".join(f.name if f.default is MISSING else f"{f.name}=_default_{f.name}" for f in every)
    lines = [f"own[{f.name!r}] = {f.name}" for f in every]
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec("\n    ".join([f"def __init__(self, {given}):", "own = self.__dict__", *lines]), space)  # our own source
    space["__init__"].__annotations__ = made.__init__.__annotations__
    made.__init__ = space["__init__"]
    return made  # type: ignore[no-any-return]
