"""Slow counterparts of the allocation rules, in exact fractions and by enumeration."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

Part = Fraction | float


def clip_and_rescale(
    w: Any,
    low: Any,
    high: Any,
    fixed: Any,
) -> list[Part]:
    """Shares by the rule of the adaptr manual: fixed shares stay, what oversteps a limit is set to it, and so on."""
    final: list[Part | None] = list(fixed)
    while True:
        open_ = [i for i, share in enumerate(final) if share is None]
        left = 1 - sum(share for share in final if share is not None)
        weight = sum(w[i] for i in open_)
        found = {i: left * (w[i] / weight if weight else Fraction(1, len(open_))) for i in open_}
        beyond = {
            i: low[i] if share < low[i] else high[i] for i, share in found.items() if not low[i] <= share <= high[i]
        }
        if not beyond:
            return [found.get(i, share) for i, share in enumerate(final)]  # type: ignore[misc]
        for i, share in beyond.items():
            final[i] = share
        if None not in final:
            return final  # type: ignore[return-value]


def fill_between(w: Any, low: Any, high: Any) -> list[float]:
    """Shares proportional to w between limits: clip(s w), where bisection finds the s for which they add up to 1."""
    least, most = 0.0, 1e12

    def at(scale: float) -> list[float]:
        return [min(max(scale * part, a), b) for part, a, b in zip(w, low, high, strict=True)]

    for _ in range(200):
        middle = 0.5 * (least + most)
        least, most = (middle, most) if sum(at(middle)) < 1.0 else (least, middle)
    return at(most)


def next_of_block(slots: Sequence[int], drawn: Sequence[int]) -> list[Fraction]:
    """How often each arm comes next among all orders of a block that begin with what was drawn."""
    pool = [arm for arm, count in enumerate(slots) for _ in range(count)]
    begun = [order for order in permutations(pool) if list(order[: len(drawn)]) == list(drawn)]
    return [Fraction(sum(order[len(drawn)] == arm for order in begun), len(begun)) for arm in range(len(slots))]
