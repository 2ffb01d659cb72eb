"""Settings of beliefs about weights: what a context must look like, and the prior of the weights."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.checks import frozen
from doublesampling.errors import ContextError, SettingError
from doublesampling.features import Features, is_record, is_records, read_features

FloatArray = NDArray[np.float64]

# no product of a few such numbers leaves the range of floating-point numbers
TINY, HUGE = 1e-50, 1e50


class TakesContext:
    """A belief that is shown a context: numbers, or records where it has features."""

    dimension: int
    features: Features | None

    def _check_features(self) -> None:
        """Check the features, and take the dimension from them where it is not given."""
        fix, given = object.__setattr__, self.dimension
        if self.features is not None:
            fix(self, "features", read_features(self.features))
            columns = self.features.dimension
            if given is None:
                fix(self, "dimension", columns)
            elif given != columns:
                raise SettingError(
                    f"dimension must be {columns}, the columns of the features, got {given}. Leave it out."
                )
        elif given is None:
            name = type(self).__name__
            raise SettingError(f"{name} needs dimension. Write {name}(dimension=...), or features=Features(...).")
        fix(self, "dimension", checks.integer("dimension", self.dimension, least=1, most=10_000))

    def _context(self, context: Any) -> FloatArray:
        """Return a context as the rules take it, float array (entry)."""
        if context is None:
            if self.features is not None:
                fields = ", ".join(field.name for field in self.features.fields)
                raise ContextError(f"A context is needed: a record with the fields {fields}.")
            raise ContextError(f"A context of {self.dimension} numbers is needed. Pass context=[...].")
        given = checks.array("context", self.as_numbers(context), error=ContextError)
        if given.shape != (self.dimension,):
            raise ContextError(f"context must hold {self.dimension} numbers, got shape {given.shape}.")
        return bounded(given)

    def as_numbers(self, contexts: Any) -> Any:
        """Return numbers for a record, for records or for a table; leave anything else as it is."""
        if self.features is None:
            if isinstance(contexts, Mapping) or (isinstance(contexts, (list, tuple)) and is_records(contexts)):
                raise ContextError(
                    f"A context of {self.dimension} numbers is needed, got a record. To pass records, make the belief "
                    f"with features: {type(self).__name__}(..., features=Features(...))."
                )
            return contexts
        if is_record(contexts):
            return self.features.vector(contexts)
        return self.features.matrix(contexts) if is_records(contexts) else contexts

    def check_contexts(self, contexts: Any, count: int) -> FloatArray:
        """Return contexts as the rules take them, float array (observation, entry)."""
        if contexts is None:
            raise ContextError(f"contexts are needed, {self.dimension} numbers per observation.")
        given = checks.array("contexts", self.as_numbers(contexts), error=ContextError)
        if count == 0 and given.size == 0:
            return np.empty((0, self.dimension))
        if given.shape != (count, self.dimension):
            raise ContextError(f"contexts must have shape ({count}, {self.dimension}), got {given.shape}.")
        return bounded(given)


class WithContext(TakesContext):
    """A belief about weights w_a, one per entry of the context: its prior mean and covariance, checked."""

    arms: int
    mean: Any
    covariance: Any

    def _check_context_settings(self) -> None:
        self._check_features()
        fix = object.__setattr__
        for name in ("mean", "covariance"):
            given = checks.array(name, getattr(self, name), error=SettingError)
            if given.size and np.abs(given).max() > HUGE:
                raise SettingError(f"{name} must lie within 1e50 of 0. Choose a larger unit.")
            fix(self, name, frozen(given))
        _ = self._prior_mean, self._prior_root

    @cached_property
    def _prior_mean(self) -> FloatArray:
        return _spread("mean", self.mean, (self.arms, self.dimension))

    @cached_property
    def _prior_root(self) -> FloatArray:
        shape = (self.arms, self.dimension, self.dimension)
        given = np.asarray(self.covariance)
        matrices = _spread("covariance", given * np.eye(self.dimension) if given.ndim == 0 else given, shape)
        scale = np.sqrt(np.abs(np.einsum("aii->ai", matrices)))
        flipped = matrices.swapaxes(1, 2)
        if (np.abs(matrices - flipped) > 1e-8 * scale[:, :, None] * scale[:, None, :]).any():
            raise SettingError("covariance must be symmetric.")
        try:
            if scale.min() < math.sqrt(TINY):
                raise np.linalg.LinAlgError
            return _upper_root(0.5 * (matrices + flipped))
        except np.linalg.LinAlgError:
            raise SettingError(
                f"covariance must be positive definite, got {checks.shown(self.covariance)}. "
                "Every eigenvalue must be above zero."
            ) from None


def _upper_root(matrices: FloatArray) -> FloatArray:
    """Upper triangular S with S S^T = V: the Cholesky factor of V with its axes counted backwards."""
    return np.asarray(np.linalg.cholesky(matrices[:, ::-1, ::-1])[:, ::-1, ::-1], dtype=np.float64)


def _spread(name: str, values: Any, shape: tuple[int, ...]) -> FloatArray:
    """A setting given for all arms, or per arm, laid out per arm."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim and given.shape not in (shape, shape[1:]):
        raise SettingError(f"{name} must have shape {shape[1:]} or {shape}, got {given.shape}.")
    return np.array(np.broadcast_to(given, shape))


def bounded(contexts: FloatArray) -> FloatArray:
    """Contexts whose squares stay within the range of floating-point numbers."""
    if contexts.size and np.abs(contexts).max() > HUGE:
        raise ContextError("contexts must lie within 1e50 of 0. Choose a larger unit.")
    return np.ascontiguousarray(contexts)
