"""The door: body sizes, time limits, foreign pages, security headers, metrics, and the last net under every error."""

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
from doublesampling.service.access import identify, token_of
from doublesampling.service.desk import Desk
from doublesampling.service.problems import RefusedError, answer, problem

log = logging.getLogger("doublesampling.service")

BODY = 1 << 20
"""The largest body of a request, in bytes."""
SECONDS = 30.0
"""How long a request may take until its answer begins."""
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


class Guard:
    """Pure ASGI: it stands in the way of every request, so it must cost next to nothing."""

    def __init__(self, app: ASGIApp, desk: Callable[[], Desk], seconds: float = SECONDS, body: int = BODY) -> None:
        self._app, self._desk, self._seconds, self._body = app, desk, seconds, body
        self._too_long = f"No answer within {seconds:g} s. Ask again: with an Idempotency-Key nothing counts twice."
        self._too_large = f"A body may have {body} bytes. Send outcomes in several batches."

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
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
                    limit.reschedule(None)  # what has begun may take its time: an export is a stream
                message = {**message, "headers": _completed(message["headers"], scope["path"])}
            await send(message)

        try:
            headers = dict(scope["headers"])
            self._refuse(scope, headers)
            async with limit:
                limited = True
                if needs_key(scope["path"]):  # before the body: who has no key sends nothing that is kept
                    scope["doublesampling.caller"] = await identify(self._desk(), token_of(headers))
                await self._app(scope, self._limited(scope, receive), sending)
        except DoubleSamplingError as refused:
            limited = False
            await answer(refused, self._desk().store.where)(scope, receive, sending)
        except Exception:
            limited = False
            if limit.expired() and not started:
                await problem("timeout", self._too_long)(scope, receive, sending)
                return
            log.exception("%s %s failed", scope["method"], scope["path"])
            if started:
                raise  # the answer is cut off, and the client sees that
            await problem("internal", "The server failed; its log says why.")(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "-")
            method = scope["method"] if scope["method"].isalpha() and len(scope["method"]) < 8 else "other"
            self._desk().metrics.record(method, route, status, time.perf_counter() - begun)

    def _refuse(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Turn away bodies that say they are too large and, without keys, whatever comes from elsewhere."""
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._body:
            raise RefusedError("too-large", self._too_large)
        if self._desk().ring.keyless:
            _refuse_strangers(scope, headers)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._body:  # a body that did not say how long it is
                raise HTTPException(413, self._too_large)  # the only kind that FastAPI lets through while it reads
            return message

        return limited


def _completed(headers: Any, path: str) -> list[tuple[bytes, bytes]]:
    present = {name.lower() for name, _ in headers}
    caching = b"no-store" if path.startswith("/v1/") else b"no-cache"
    return [*headers, *_HEADERS, *([] if b"cache-control" in present else [(b"cache-control", caching)])]


def needs_key(path: str) -> bool:
    """Whether a path holds data. The dashboard's own files, the schema and /healthz hold none."""
    return path.startswith("/v1") or path == "/metrics"


def _refuse_strangers(scope: Scope, headers: dict[bytes, bytes]) -> None:
    """Without keys, serve only pages and programs of this machine.

    Both ends of the connection must be this machine, and no proxy may stand between. A foreign page in the user's
    browser can send requests here too (and, by a name that it makes point to 127.0.0.1, read the answers), so both the
    Host and the Origin must be this machine's.
    """
    ends = [end[0] for end in (scope.get("client"), scope.get("server")) if end is not None]
    if not all(is_loopback(end) for end in ends):
        raise RefusedError("host", "Without keys this service answers only this machine. Make a key to open it.")
    if any(name in headers for name in _FORWARDED):
        raise RefusedError(
            "host", "A proxy stands in front of this service, and the store has no keys. Make one first."
        )
    host = headers.get(b"host", b"localhost").decode("latin-1")
    if _hostname(f"//{host}") not in LOOPBACK:
        raise RefusedError("host", "Without keys this service answers only to localhost. Make a key to open it.")
    origin = headers.get(b"origin", b"").decode("latin-1")
    if (origin and _place(origin) != host) or headers.get(b"sec-fetch-site", b"") == b"cross-site":
        raise RefusedError("host", "Another page may not use this service in your name.")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; the empty one of a Unix socket counts.

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


def _place(text: str) -> str:
    """Host and port of an origin; empty where it is none."""
    try:
        return urlsplit(text).netloc
    except ValueError:
        return ""
