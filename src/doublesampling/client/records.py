"""Decisions and outcomes as a key without the scope ``read`` gets them: what it may not see raises an error."""

import datetime
from typing import Any

from doublesampling.live.records import Outcome, Receipt

_HIDDEN = "is not shown to this key: it has no scope 'read'. Use a key that may see results."


class BlindReceipt(Receipt):
    """A decision with ``id, experiment, unit, arm, arm_name, asked_at, repeated``; other fields raise AttributeError.

    ``arm`` is None where arms have codes, and ``arm_name`` is then the code.
    """

    def __init__(self, shown: dict[str, Any]) -> None:
        self.__dict__.update(shown)

    def __getattribute__(self, name: str) -> Any:
        if name in Receipt.__dataclass_fields__ and name not in super().__getattribute__("__dict__"):
            raise AttributeError(f"{name} {_HIDDEN}")
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        return f"BlindReceipt({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**self.__dict__, "asked_at": self.asked_at.isoformat()}


class BlindOutcome(Outcome):
    """The confirmation that a decision has an outcome: ``decision, repeated, detail``; no stored value."""

    detail: str | None
    """What it means that an outcome was stored before; None where this one was stored."""

    def __init__(self, shown: dict[str, Any]) -> None:
        self.__dict__.update(shown)

    def __getattribute__(self, name: str) -> Any:
        if name in Outcome.__dataclass_fields__ and name not in super().__getattribute__("__dict__"):
            raise AttributeError(f"{name} {_HIDDEN}")
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        return f"BlindOutcome({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return dict(self.__dict__)


def parse_time(text: str) -> datetime.datetime:
    """Return a time of a response."""
    return datetime.datetime.fromisoformat(text)
