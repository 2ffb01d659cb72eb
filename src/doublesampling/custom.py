"""Worlds of your own, for ``simulate``: anything with ``arms`` and ``step(time, rng)``.

They know the time, so they may drift.

Policies of your own need one method, ``choose(evidence)`` (evidence.py), beliefs of your own three (beliefs/own.py).
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from doublesampling import checks
from doublesampling.errors import SettingError


class WorldStep(NamedTuple):
    """One step of a world: what is shown, what each arm is expected to pay, and what each would pay."""

    context: Any
    means: ArrayLike
    rewards: ArrayLike


class World(Protocol):
    """Where policies are played."""

    arms: int

    def step(self, time: int, rng: np.random.Generator) -> WorldStep:
        """Return step ``time``, counted from 1; the same generator gives the same step, whichever policy plays."""


def is_world(world: object) -> bool:
    """Tell whether an object is a world of somebody's own."""
    return not isinstance(world, type) and callable(getattr(world, "step", None)) and hasattr(world, "arms")


def check_step(world: World, step: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the context, means and rewards of a step, or say what is wrong with them."""
    name = f"{type(world).__name__}.step"
    if not isinstance(step, tuple) or len(step) != len(WorldStep._fields):
        raise SettingError(f"{name} must return WorldStep(context, means, rewards), got {checks.shown(step)}.")
    context, means, rewards = step
    found = [checks.array(f"{part} of {name}", value, error=SettingError) for part, value in
             (("means", means), ("rewards", rewards))]  # fmt: skip
    for part, value in zip(("means", "rewards"), found, strict=True):
        if value.shape != (world.arms,):
            raise SettingError(f"{name} must return {world.arms} {part}, one per arm, got shape {value.shape}.")
    return context, found[0], found[1]
