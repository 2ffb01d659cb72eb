"""The middleware: authentication, body and time limits, cross-site protection, security headers, metrics, errors."""

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doublesampling.errors import DoubleSamplingError
from doublesampling.service.access import bearer_token, identify
from doublesampling.service.problems import RefusedError, error_response, problem
from doublesampling.service.state import ServiceState

log = logging.getLogger("doublesampling.service")

BODY = 1 << 20
"""The largest body of a request, in bytes."""
SECONDS = 30.0
"""The time limit until the response starts, in seconds."""
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"via")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]  # fmt: skip


class ServiceMiddleware:
    """A pure ASGI middleware, which is quicker than Starlette's base class: every request passes through it."""

    def __init__(
        self, app: ASGIApp, state: Callable[[], ServiceState], seconds: float = SECONDS, body: int = BODY
    ) -> None:
        self._app, self._state, self._seconds, self._body = app, state, seconds, body
        self._too_long = f"No response within {seconds:g} s. Try again: with an Idempotency-Key nothing counts twice."
        self._too_large = f"A body may have {body} bytes at most. Send outcomes in several batches."

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; every error becomes a response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, started, limited = time.perf_counter(), 500, False, False
        limit = asyncio.timeout(self._seconds)

        async def sending(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                if limited and not limit.expired():
                    limit.reschedule(None)  # a response that has started has no time limit: an export is a stream
                message = {**message, "headers": _completed(message["headers"], scope["path"])}
            await send(message)

        try:
            headers = dict(scope["headers"])
            self._refuse(scope, headers)
            async with limit:
                limited = True
                if needs_key(scope["path"]):  # before the body is read
                    scope["doublesampling.caller"] = await identify(self._state(), bearer_token(headers))
                await self._app(scope, self._limited(scope, receive), sending)
        except DoubleSamplingError as refused:
            limited = False
            await error_response(refused, self._state().store.where)(scope, receive, sending)
        except Exception:
            limited = False
            if limit.expired() and not started:
                await problem("timeout", self._too_long)(scope, receive, sending)
                return
            log.exception("%s %s failed", scope["method"], scope["path"])
            if started:
                raise  # the response is cut off, which the client notices
            await problem("internal", "The server failed; see its log.")(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "-")
            method = scope["method"] if scope["method"].isalpha() and len(scope["method"]) < 8 else "other"
            self._state().metrics.record(method, route, status, time.perf_counter() - begun)

    def _refuse(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse bodies that declare too large a size and, without keys, requests from other machines."""
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._body:
            raise RefusedError("too-large", self._too_large)
        if self._state().key_cache.keyless:
            _refuse_remote(scope, headers)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._body:  # a body without a declared length
                raise HTTPException(413, self._too_large)  # FastAPI passes on only this kind while it reads
            return message

        return limited


def _completed(headers: Any, path: str) -> list[tuple[bytes, bytes]]:
    present = {name.lower() for name, _ in headers}
    caching = b"no-store" if path.startswith("/v1/") else b"no-cache"
    return [*headers, *_HEADERS, *([] if b"cache-control" in present else [(b"cache-control", caching)])]


def needs_key(path: str) -> bool:
    """Return whether a path serves data. The dashboard's files, the OpenAPI document and /healthz do not."""
    return path.startswith("/v1") or path == "/metrics"


def _refuse_remote(scope: Scope, headers: dict[bytes, bytes]) -> None:
    """Refuse requests that do not come from this machine, in a service without keys.

    Both ends of the connection must be this machine, without a proxy in between. A foreign page in the user's browser
    can send requests here too (and, with a host name that resolves to 127.0.0.1, read the responses), so both the Host
    and the Origin must be this machine's.
    """
    ends = [end[0] for end in (scope.get("client"), scope.get("server")) if end is not None]
    if not all(is_loopback(end) for end in ends):
        raise RefusedError("host", "Without keys this service answers only this machine. Create a key to allow others.")
    if any(name in headers for name in _FORWARDED):
        raise RefusedError("host", "The request came through a proxy, and the store has no keys. Create a key first.")
    host = headers.get(b"host", b"localhost").decode("latin-1")
    if _hostname(f"//{host}") not in LOOPBACK:
        raise RefusedError("host", "Without keys this service answers only to localhost. Create a key to allow others.")
    origin = headers.get(b"origin", b"").decode("latin-1")
    if (origin and _netloc(origin) != host) or headers.get(b"sec-fetch-site", b"") == b"cross-site":
        raise RefusedError("host", "Requests from another site are refused.")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address; True for the empty one of a Unix socket.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost", "")]
    [True, True, True, True, True]
    >>> [is_loopback(host) for host in ("0.0.0.0", "::", "192.0.2.1", "::ffff:192.0.2.1", "example.org")]
    [False, False, False, False, False]
    """
    if host in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (address if mapped is None else mapped).is_loopback


def _hostname(text: str) -> str:
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""


def _netloc(text: str) -> str:
    """Return the host and port of an origin; empty where it is invalid."""
    try:
        return urlsplit(text).netloc
    except ValueError:
        return ""
