"""What every belief asks of a state and of a history."""

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.beliefs.states import State
from doublesampling.errors import RewardError, StateError


def check_state(belief: object, state: object, kind: type[State], shapes: dict[str, tuple[int, ...]]) -> None:
    """Raise StateError where a state is not one of this belief."""
    name = type(belief).__name__
    if not isinstance(state, kind):
        raise StateError(f"{name} needs a {kind.__name__}, got {checks.shown(state)}. Start from belief.prior().")
    for part, shape in shapes.items():
        found = getattr(state, part).shape
        if found != shape:
            raise StateError(f"{name} needs a state with {part} of shape {shape}, got {found}: another belief made it.")


def check_rewards(rewards: object, arms: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return as many finite rewards as arms were played, or raise RewardError."""
    given = checks.array("rewards", rewards, error=RewardError)
    if given.shape != arms.shape:
        raise RewardError(f"rewards must be as many as arms ({arms.size}), got shape {given.shape}.")
    return given
