"""Categories: one column of 0 and 1 for each (one-hot)."""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.features.fields import Field, Value, plain

UNKNOWN = ("error", "other", "zero")
OTHER = "other"
_LONGEST = 500  # characters of a category that is stored with a decision


@dataclass(frozen=True, kw_only=True)
class Category(Field):
    """One of several categories, as one column of 0 and 1 each (one-hot)."""

    kind: ClassVar[str] = "category"
    categories: tuple[str | int, ...] | None
    """Texts or whole numbers; None where they must be learned."""
    unknown: str = "error"
    drop_first: bool = False

    def __post_init__(self) -> None:
        checks.one_of("unknown", self.unknown, UNKNOWN)
        checks.flag("drop_first", self.drop_first)
        if self.drop_first and self.unknown == "zero":
            raise SettingError(
                f'{self.name}: unknown="zero" with drop_first=True would read an unknown category as the first one. '
                'Use unknown="other" or unknown="error".'
            )
        if self.categories is not None:
            self._check_categories()

    def _check_categories(self) -> None:
        listed = tuple(plain(each) for each in self.categories or ())
        if len(listed) < 2 or len(set(listed)) < len(listed):
            raise SettingError(f"{self.name} must list two or more different categories, got {checks.shown(listed)}.")
        for each in listed:
            if isinstance(each, bool) or not isinstance(each, (str, int)) or not self._short(each):
                raise SettingError(
                    f"The categories of {self.name} must be texts or whole numbers, got {checks.shown(each)}. "
                    f'For a range of numbers write ({self.name}=(low, high)), for True and False "boolean".'
                )
        if self.unknown == OTHER and OTHER in listed:
            raise SettingError(
                f'{self.name} has a category {OTHER!r} already. List it and use unknown="error", or leave it out of '
                "the list."
            )
        object.__setattr__(self, "categories", listed)

    @staticmethod
    def _short(value: object) -> bool:
        return not isinstance(value, str) or 0 < len(value) <= _LONGEST

    @property
    def columns(self) -> tuple[str, ...]:
        """One column per category, such as ``site=a``; without the first where it is the reference."""
        more = (OTHER,) if self.unknown == OTHER else ()
        return tuple(f"{self.name}={each}" for each in (*(self.categories or ())[self.drop_first :], *more))

    @property
    def fitted(self) -> bool:
        """Whether the categories are known."""
        return self.categories is not None

    def fit(self, values: Sequence[Any]) -> Self:
        """Return the field with the categories of these values, sorted."""
        if self.fitted:
            return self
        found = {self._present(value) for value in values}
        return replace(self, categories=tuple(sorted(found, key=lambda each: (isinstance(each, str), each))))  # type: ignore[arg-type]

    def check(self, value: object) -> str | int:
        """Return one of the categories; an unknown one as it came where unknown ones are mapped."""
        given, known = self._present(value), self.categories or ()
        if isinstance(given, float) and given.is_integer():  # pandas turns whole numbers into floats
            given = int(given)
        if isinstance(given, bool) or not isinstance(given, (str, int)):
            raise self._refuse(f"one of {self._listed()}", value)
        if given in known:
            return given
        if self.unknown == "error" or not self._short(given):
            near = difflib.get_close_matches(str(given), [str(each) for each in known], n=1)
            raise self._refuse(f"one of {self._listed()}", value, f"Did you mean {near[0]!r}?" if near else "")
        return given

    def _listed(self) -> str:
        known = self.categories or ()
        return ", ".join(repr(each) for each in known[:12]) + (
            f" and {len(known) - 12} more" if len(known) > 12 else ""
        )

    def encode(self, value: Value) -> list[float]:
        """Return a 1 in the column of the category and 0 in the others."""
        known = self.categories or ()
        places = (*known, OTHER) if self.unknown == OTHER else known
        place = places.index(value) if value in known else len(places) - 1 if self.unknown == OTHER else None
        return [float(i == place) for i in range(len(places))][self.drop_first :]

    def typical(self, values: Sequence[Value]) -> str | int:
        """Return the most frequent category; of equally frequent ones the first in the list."""
        known, counts = self.categories or (), Counter(values)
        others = [] if self.unknown == "error" else [each for each in counts if each not in known]
        return max([*known, *others], key=lambda each: counts[each])  # type: ignore[return-value]

    def to_dict(self) -> dict[str, Any]:
        """Return the field in plain values, for JSON."""
        listed = None if self.categories is None else list(self.categories)
        found: dict[str, Any] = {"name": self.name, "kind": self.kind, "categories": listed}
        return found | {"unknown": self.unknown, "drop_first": self.drop_first}

    def written(self) -> str:
        """Return the field as it is written in ``Features(...)``."""
        return repr(self.kind if self.categories is None else list(self.categories))
