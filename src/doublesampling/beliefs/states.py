"""What has been learned so far: plain read-only arrays, to and from JSON without losing a bit."""

import json
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from doublesampling.errors import StateError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
S = TypeVar("S", bound="State")


@dataclass(frozen=True, eq=False)
class State:
    """The posterior of every arm. A state never changes; an update returns a new one."""

    counts: IntArray
    """Observations per arm, int array (arm)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            getattr(self, field.name).setflags(write=False)

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return self.counts.size

    @property
    def observations(self) -> int:
        """How many rewards have been absorbed, over all arms."""
        return int(self.counts.sum())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, field.name).tobytes() for field in fields(self)))

    def to_json(self) -> str:
        """The state as JSON text; floats are written so that they are read back to the last bit."""
        arrays = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        return json.dumps({"state": type(self).__name__} | arrays, allow_nan=False)


@dataclass(frozen=True, eq=False)
class BetaState(State):
    """Beta(alpha, beta) per arm, float arrays (arm)."""

    alpha: FloatArray
    beta: FloatArray


@dataclass(frozen=True, eq=False)
class NormalInverseGammaState(State):
    """NIG(u, V, alpha, beta) per arm: u is mean (arm, d); V = root root^T, root (arm, d, d); alpha, beta (arm)."""

    mean: FloatArray
    root: FloatArray
    alpha: FloatArray
    beta: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """V per arm, float array (arm, d, d): the covariance of the weights in units of the noise variance."""
        return np.asarray(self.root @ self.root.swapaxes(1, 2))


def state_from_json(text: str | bytes, kind: type[S], shapes: dict[str, tuple[int, ...]]) -> S:
    """Read a state back, refusing text that is no state, or one of another belief or size."""
    try:
        content: Any = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise StateError("This is not JSON. Pass what state.to_json() returned.") from None
    if not isinstance(content, dict) or content.pop("state", None) != kind.__name__:
        raise StateError(f"This JSON does not hold a {kind.__name__}. Pass what state.to_json() returned.")
    if set(content) != set(shapes):
        raise StateError(f"A {kind.__name__} holds {', '.join(shapes)}; got {', '.join(content) or 'nothing'}.")
    arrays: dict[str, Any] = {}
    for name, shape in shapes.items():
        try:
            found = np.array(content[name], dtype=np.int64 if name == "counts" else np.float64)
        except (TypeError, ValueError, OverflowError):
            raise StateError(f"{name} must hold numbers in a regular array.") from None
        if found.shape != shape:
            raise StateError(f"{name} must have shape {shape} for this belief, got {found.shape}.")
        if not np.isfinite(found).all():
            raise StateError(f"{name} must be finite.")
        arrays[name] = found
    if any((arrays[name] <= 0.0).any() for name in ("alpha", "beta")) or (arrays["counts"] < 0).any():
        raise StateError("alpha and beta must be positive and counts not negative. Is the file damaged?")
    return kind(**arrays)
