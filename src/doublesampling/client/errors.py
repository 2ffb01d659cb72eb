"""Errors of the client: exceptions of this package, made from the problem responses of a service."""

import json
from dataclasses import dataclass
from typing import Any

from doublesampling import errors
from doublesampling.errors import DoubleSamplingError
from doublesampling.live.own_classes import OwnCodeError
from doublesampling.live.unavailable import NotImportedError


class ServiceError(DoubleSamplingError, RuntimeError):
    """A service that refuses a request or fails. ``code`` and ``status`` are those of its response."""

    code = "service"

    def __init__(self, message: str, *, code: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.code = self.code if code is None else code
        self.status = status


class UnauthorizedError(ServiceError):
    """A key that is missing, unknown, expired or revoked (401)."""

    code = "unauthorized"


class ForbiddenError(ServiceError):
    """A key that may not do this (403)."""

    code = "forbidden"


class TooManyRequestsError(ServiceError):
    """A service that is busy with too many requests of the same kind (429)."""

    code = "too-many"


class UnavailableError(ServiceError):
    """A service that did not answer in time, is down, or cannot be reached. The request may have been stored."""

    code = "unavailable"


class UnexpectedResponseError(ServiceError):
    """A response that no service of this package sends: the URL probably belongs to something else."""

    code = "unexpected-response"


@dataclass(eq=False)
class FailedAttemptError(Exception):
    """An attempt that failed: the error, whether to try again, and whether the request may have been stored."""

    error: DoubleSamplingError
    again: bool = False
    unclear: bool = False
    after: float | None = None
    """The seconds after which the service wants to be asked again."""


def _family(base: type[DoubleSamplingError]) -> list[type[DoubleSamplingError]]:
    return [base, *(found for below in base.__subclasses__() for found in _family(below))]


_KNOWN: list[type[DoubleSamplingError]] = [NotImportedError, OwnCodeError]
_KNOWN += [kind for kind in _family(DoubleSamplingError) if kind.__module__ == errors.__name__]
_STORED = {kind.code: kind for kind in _KNOWN}
_REFUSED: dict[str, type[ServiceError]] = {
    "unauthorized": UnauthorizedError,
    "forbidden": ForbiddenError,
    "host": ForbiddenError,
    "too-many": TooManyRequestsError,
    "timeout": UnavailableError,
}
AGAIN = frozenset({"storage", "storage-busy", "timeout", "too-many"})
"""Codes of failures that pass by themselves."""
_PROXY = frozenset({408, 429, 502, 503, 504})  # a proxy says so while the service restarts


def failure_from_response(status: int, headers: Any, body: bytes, url: str) -> FailedAttemptError:
    """Return what a response with an error status means."""
    after = _seconds(headers.get("retry-after"))
    problem = _problem(body)
    if problem is not None:
        code, detail = str(problem["code"]), str(problem["detail"])
        error = make_error(code, detail, status)
        return FailedAttemptError(error, code in AGAIN, unclear=status >= 500, after=after)
    if status in _PROXY:
        message = f"{url} answered {status}: the service behind it does not respond. Try again later."
        return FailedAttemptError(UnavailableError(message, status=status), again=True, unclear=True, after=after)
    if 300 <= status < 400:
        message = f"{url} redirects to {headers.get('location', 'another address')}. Connect to that address."
        return FailedAttemptError(UnexpectedResponseError(message, status=status))
    kind = str(headers.get("content-type", "no content type")).partition(";")[0]
    return FailedAttemptError(unexpected(url, f"{status} with {kind}", status))


def unexpected(url: str, what: str, status: int | None = None) -> UnexpectedResponseError:
    """Return the error for a response that is not one of this service."""
    return UnexpectedResponseError(
        f"{url} answered {what}, which no doublesampling service does. Check the URL: it is the address of the "
        "dashboard, such as https://trials.example.",
        status=status,
    )


def make_error(code: str, detail: str, status: int) -> DoubleSamplingError:
    """Return the exception of an error code: one of this package, or a ServiceError."""
    stored = _STORED.get(code)
    if stored is not None:
        return stored(detail)
    return _REFUSED.get(code, ServiceError)(detail, code=code, status=status)


def _problem(body: bytes) -> dict[str, Any] | None:
    """Return a problem of this service (RFC 9457 with a code), or None for anything else."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    ours = isinstance(found, dict) and str(found.get("type", "")).startswith("urn:doublesampling:")
    return found if ours and {"code", "detail"} <= found.keys() else None


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() and len(text) < 6 else None
