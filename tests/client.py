"""Helpers of the client's tests: connections to an app in the same process, and transports that fail on purpose."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx2

import doublesampling as ds
from doublesampling.client import Connection
from doublesampling.live.stores import open_store, upgrade
from doublesampling.service import keys
from tests.service import HERE, client


def new_key(storage: str, role: str | None = "admin", **more: Any) -> str:
    store = open_store(storage)
    upgrade.ensure(store)
    return keys.create(store, role, **more)[1]


@contextlib.contextmanager
def service(storage: str) -> Iterator[Any]:
    """The transport of a service in this process."""
    with client(storage) as made:
        yield InProcess(made)


class InProcess(httpx2.BaseTransport):
    """Passes requests on to a test client of Starlette, whichever HTTP library that uses."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        found = self._inner.request(
            request.method,
            str(request.url),
            content=request.read(),
            headers=dict(request.headers),
            follow_redirects=False,
        )
        return httpx2.Response(found.status_code, headers=list(found.headers.items()), content=found.content)


class Transport(httpx2.BaseTransport):
    """Passes requests on to a service, or lets them fail: ``failures`` are used up one by one.

    A failure is called with the request and the service; it returns a response or raises.
    """

    def __init__(self, inner: Any, *failures: Callable[[Any, Any], Any]) -> None:
        self.inner, self.failures, self.requests = inner, list(failures), list[Any]()

    def handle_request(self, request: Any) -> Any:
        request.read()
        self.requests.append(request)
        if self.failures:
            return self.failures.pop(0)(request, self.inner)
        return self.inner.handle_request(request)


def lost(request: Any, inner: Any) -> Any:
    """The service handles the request, and its response gets lost."""
    inner.handle_request(request)
    raise httpx2.ReadError("connection reset by peer")


def refused(request: Any, inner: Any) -> Any:
    raise httpx2.ConnectError("connection refused")


def answering(status: int, content: Any = None, **headers: str) -> Callable[[Any, Any], Any]:
    """A response of another server, or of a proxy."""
    more = {"json": content} if isinstance(content, (dict, list)) else {"content": content or b""}
    fixed = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request, inner: httpx2.Response(status, headers=fixed, **more)


def problem(status: int, code: str, **headers: str) -> Callable[[Any, Any], Any]:
    content = {"type": f"urn:doublesampling:{code}", "title": "", "status": status, "detail": "no", "code": code}
    return answering(status, content, **headers)


def connected(transport: Any, key: str | None = None, **more: Any) -> Connection:
    return ds.connect(HERE, key=key, transport=transport, **more)
