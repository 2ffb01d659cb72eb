"""What has been learned so far: plain read-only arrays, to and from JSON without losing a bit."""

import functools
import json
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from doublesampling import html
from doublesampling.errors import StateError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
S = TypeVar("S", bound="State")

# what each array may hold: beyond, the rules would leave the range of floating-point numbers
_BOUNDS = {
    "counts": (0, 2**53),
    "mean": (-1e110, 1e110),
    "root": (-1e30, 1e30),
    "alpha": (1e-6, 1e15),
    "beta": (1e-60, 1e250),
    "shape": (1e-6, 1e20),
    "rate": (1e-6, 1e70),
    "concentration": (1e-6, 1e15),
}


@dataclass(frozen=True, eq=False)
class State:
    """The posterior of every arm. A state never changes; an update returns a new one."""

    counts: IntArray
    """Observations per arm, int array (arm)."""
    _per_arm = True  # whether the first dimension of every statistic is the arm; not annotated, so no field

    def __post_init__(self) -> None:
        for field in fields(self):
            array = getattr(self, field.name)
            kinds = "i" if field.name == "counts" else "f"
            if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds or array.dtype.itemsize != 8:
                raise StateError(f"{field.name} must be an array of {'int64' if kinds == 'i' else 'float64'}.")
            low, high = self._bounds()[field.name]
            if array.size and not low <= array.min() <= array.max() <= high:  # nan is refused too
                found = f"{array.min():g} to {array.max():g}"
                raise StateError(f"{field.name} must lie between {low:g} and {high:g}, got {found}.")
            array.setflags(write=False)

    @classmethod
    def checked(cls, arrays: dict[str, Any]) -> Self:
        """Return a state whose arrays, by name, are known to be right, without looking at them again."""
        state = object.__new__(cls)
        for array in arrays.values():
            array.setflags(write=False)
        state.__dict__.update(arrays)
        return state

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return _BOUNDS

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return self.counts.size

    @property
    def observations(self) -> int:
        """How many rewards have been absorbed, over all arms."""
        # a sum of a few Python numbers is quicker than a reduction
        return sum(self.counts.tolist()) if self.counts.size < 50 else int(self.counts.sum())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, field.name).tobytes() for field in fields(self)))

    def _repr_html_(self) -> str:
        """A table for a notebook: observations of each arm, and its statistics; not the roots of covariances."""
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("counts", "root")}
        per_arm = {name: values for name, values in known.items() if len(values) == self.arms and self._per_arm}
        rows = [(arm, self.counts[arm], *(values[arm] for values in per_arm.values())) for arm in range(self.arms)]
        more = [html.line(f"{name}:", values) for name, values in known.items() if name not in per_arm]
        shown = html.table(rows, ["arm", "observations", *per_arm], caption=type(self).__name__)
        return html.block(shown, *more)

    def to_json(self) -> str:
        """Return the state as JSON text; floats are written so that they are read back to the last bit."""
        arrays = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        return json.dumps({"state": type(self).__name__} | arrays, allow_nan=False)


class PairState(State):
    """Two numbers per arm."""

    @classmethod
    @functools.cache
    def names(cls) -> tuple[str, str]:
        """Return what the two numbers are called."""
        _, first, second = (field.name for field in fields(cls))
        return first, second

    @classmethod
    @functools.cache
    def bounds_array(cls) -> FloatArray:
        """Return the least and the largest value of both numbers, float array (4)."""
        return np.array([bound for name in cls.names() for bound in _BOUNDS[name]])

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Both, float arrays (arm)."""
        first, second = self.names()
        return getattr(self, first), getattr(self, second)


@dataclass(frozen=True, eq=False)
class BetaState(PairState):
    """Beta(alpha, beta) per arm, float arrays (arm)."""

    alpha: FloatArray
    beta: FloatArray


@dataclass(frozen=True, eq=False)
class GammaState(PairState):
    """Gamma(shape, rate) per arm, float arrays (arm)."""

    shape: FloatArray
    rate: FloatArray


@dataclass(frozen=True, eq=False)
class DirichletState(State):
    """Dirichlet(concentration) per arm, float array (arm, category)."""

    concentration: FloatArray


@dataclass(frozen=True, eq=False)
class NormalState(State):
    """N(mean, root root^T) per arm: mean (arm, d), root (arm, d, d)."""

    mean: FloatArray
    root: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """The covariance of the weights per arm, float array (arm, d, d)."""
        return np.asarray(self.root @ self.root.swapaxes(1, 2))


@dataclass(frozen=True, eq=False)
class NormalInverseGammaState(State):
    """NIG(u, V, alpha, beta) per arm: u is mean (arm, d); V = root root^T, root (arm, d, d); alpha, beta (arm)."""

    mean: FloatArray
    root: FloatArray
    alpha: FloatArray
    beta: FloatArray

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return _BOUNDS | {"alpha": (0.05, 1e15)}

    @property
    def covariance(self) -> FloatArray:
        """V per arm, float array (arm, d, d): the covariance of the weights in units of the noise variance."""
        return np.asarray(self.root @ self.root.swapaxes(1, 2))


@dataclass(frozen=True, eq=False)
class JointState(State):
    """NIG(u, V, alpha, beta) of the weights of all arms together: u is mean (d); V = root root^T, root (d, d)."""

    mean: FloatArray
    root: FloatArray
    alpha: FloatArray
    beta: FloatArray
    _per_arm = False

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return _BOUNDS | {"alpha": (0.05, 1e15)}

    @property
    def covariance(self) -> FloatArray:
        """V, float array (d, d): the covariance of the weights in units of the noise variance."""
        return np.asarray(self.root @ self.root.T)

    def resized(self, prior: "JointState") -> "JointState":
        """Return the state for another number of arms, whose prior is given: the weights of added arms start there.

        The weights of the last arms stand last; those of an arm that was never played are independent of all others.
        """
        counts, mean, root = prior.counts.copy(), prior.mean.copy(), prior.root.copy()
        arms, size = min(counts.size, self.counts.size), min(mean.size, self.mean.size)
        counts[:arms], mean[:size], root[:size, :size] = self.counts[:arms], self.mean[:size], self.root[:size, :size]
        return JointState(counts, mean, root, self.alpha.copy(), self.beta.copy())


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
            found = np.array(content[name])
        except (TypeError, ValueError, OverflowError):
            found = np.empty(0, dtype=object)
        if found.dtype.kind not in ("i" if name == "counts" else "if"):
            raise StateError(f"{name} must hold {'whole ' if name == 'counts' else ''}numbers in a regular array.")
        if found.shape != shape:
            raise StateError(f"{name} must have shape {shape} for this belief, got {found.shape}.")
        arrays[name] = found.astype(np.int64 if name == "counts" else np.float64)
    return kind(**arrays)
