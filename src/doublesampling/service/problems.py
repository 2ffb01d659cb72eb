"""Errors as application/problem+json (RFC 9457): a stable code, a status, and never a stack trace."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from doublesampling.errors import DoubleSamplingError

log = logging.getLogger("doublesampling.service")

STATUS = {
    "arm": 422,
    "context": 422,
    "conflict": 409,
    "draws": 422,
    "extra": 501,
    "forbidden": 403,
    "host": 403,
    "internal": 500,
    "invalid": 422,
    "log": 422,
    "method": 405,
    "name-taken": 409,
    "no-keys": 503,
    "not-found": 404,
    "not-imported": 501,
    "not-ours": 503,
    "other-experiment": 404,
    "own-code": 500,
    "paused": 409,
    "reward": 422,
    "schema-too-new": 503,
    "schema-too-old": 503,
    "setting": 422,
    "propensity": 422,
    "state": 422,
    "stopped": 409,
    "storage": 503,
    "storage-busy": 503,
    "storage-full": 507,
    "storage-read-only": 503,
    "storage-replaced": 503,
    "timeout": 503,
    "too-large": 413,
    "too-many": 429,
    "unauthorized": 401,
    "voided": 409,
}
"""The HTTP status of every error code; a code that is missing here is a bug and gives 500."""

TITLES = {
    "arm": "Invalid arm",
    "conflict": "Conflict with a stored value",
    "context": "Invalid context",
    "extra": "Not installed on this server",
    "forbidden": "The key lacks permission",
    "host": "Requests from this address are refused",
    "internal": "The server failed",
    "invalid": "The request does not fit the schema",
    "log": "The log cannot be evaluated",
    "method": "Method not allowed",
    "name-taken": "The name is taken",
    "no-keys": "The store has no keys",
    "not-found": "Not found",
    "not-imported": "A class is not imported on this server",
    "other-experiment": "The decision belongs to another experiment",
    "paused": "The experiment is paused",
    "propensity": "Propensities that are too small",
    "reward": "Invalid reward",
    "setting": "Invalid setting",
    "stopped": "The experiment has ended",
    "storage-busy": "The store is busy",
    "storage-full": "The store is full",
    "storage-read-only": "The store is read-only",
    "storage-replaced": "The store was removed or replaced",
    "timeout": "Timeout",
    "too-large": "Too large",
    "too-many": "Too many at once",
    "unauthorized": "A key is needed",
    "voided": "The decision was voided",
}
_AGAIN = {"storage-busy", "timeout", "storage", "too-many"}
_HIDDEN_DETAIL = "The store cannot be used at the moment; see the server's log. No partial change was stored."
_PLAIN = {404: "not-found", 405: "method", 413: "too-large"}


class RefusedError(DoubleSamplingError):
    """A request that the service refuses."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def problem(code: str, detail: str, **more: Any) -> JSONResponse:
    """Return the response for an error code."""
    status = STATUS.get(code, 500)
    content = {
        "type": f"urn:doublesampling:{code}",
        "title": TITLES.get(code, "The store cannot be used" if status == 503 else "Error"),
        "status": status,
        "detail": detail,
        "code": code,
    }
    headers = {"Retry-After": "1"} if code in _AGAIN else {}
    if code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(content | more, status, headers, media_type="application/problem+json")


def error_response(error: DoubleSamplingError, where: str = "") -> JSONResponse:
    """Return the response for an error of this package, without the location of the store."""
    status = STATUS.get(error.code, 500)
    if status >= 500 and not isinstance(error, RefusedError):
        log.error("%s: %s", error.code, error)
    if status == 503 and not isinstance(error, RefusedError):
        return problem(error.code, _HIDDEN_DETAIL)
    if status in (500, 507):
        return problem(error.code if status == 507 else "internal", _HIDDEN_DETAIL)
    return problem(error.code, str(error).replace(where, "this store") if where else str(error))


def install(app: FastAPI) -> None:
    """Add handlers for every kind of error to the app."""

    async def ours(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, DoubleSamplingError)
        service = getattr(request.app.state, "service", None)
        return error_response(error, service.store.where if service is not None else "")

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        found = [
            {"where": ".".join(str(part) for part in e["loc"] if part != "body"), "what": _wanted(e)}
            for e in error.errors()[:20]  # the invalid input is not repeated
        ]
        first = f"{found[0]['where'] or 'The body'} {found[0]['what']}." if found else "The request could not be read."
        return problem("invalid", first, errors=found)

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        code = _PLAIN.get(error.status_code, "invalid" if error.status_code < 500 else "internal")
        response = problem(code, _said(error, request))
        if error.headers:
            response.headers.update(error.headers)
        return response

    app.add_exception_handler(DoubleSamplingError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


_WANTED = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field",
    "string_too_short": "must not be empty",
    "string_too_long": "may have {max_length} characters",
    "string_type": "must be text",
    "too_short": "needs at least {min_length} entries, got {actual_length}",
    "too_long": "may have {max_length} entries, got {actual_length}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "literal_error": "must be {expected}",
    "json_invalid": "is not JSON ({error})",
    "model_attributes_type": "must be a JSON object",
}


def _wanted(error: Any) -> str:
    """Return what is wrong with a field."""
    known = _WANTED.get(error["type"])
    return error["msg"] if known is None else known.format(**error.get("ctx", {}))


def _said(error: HTTPException, request: Request) -> str:
    if error.status_code == 404:
        return f"There is nothing at {request.url.path[:200]}. /openapi.json lists the routes."
    if error.status_code == 405:
        return f"{request.method[:20]} is not allowed here. /openapi.json lists the routes."
    return str(error.detail)
