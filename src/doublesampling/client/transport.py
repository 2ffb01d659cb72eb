"""Send calls over HTTP, blocking or with asyncio, and try again where that is safe."""

import asyncio
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

from doublesampling import __version__, checks
from doublesampling.client.calls import Call
from doublesampling.client.errors import (
    FailedAttemptError,
    UnavailableError,
    UnexpectedResponseError,
    failure_from_response,
    unexpected,
)
from doublesampling.client.retries import Attempts
from doublesampling.errors import DoubleSamplingError, NameTakenError, SettingError, StateError, missing_extra

T = TypeVar("T")
_CONNECT = 10.0  # seconds for a connection


def import_httpx() -> ModuleType:
    """Return the HTTP library; raise MissingExtraError where it is not installed."""
    try:
        import httpx2
    except ImportError:
        raise missing_extra("connect needs httpx2", "client") from None
    return httpx2


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings:
    """Where the service is, the key, and how long to try."""

    url: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 40.0
    """Seconds for one attempt; the service itself gives up after 30."""
    retry_for: float = 60.0
    """Seconds during which a request that failed is tried again; 0 for one attempt only."""
    verify: bool | str | ssl.SSLContext = True
    """Whether certificates are checked, or a file with certificates to trust, or an SSL context."""
    transport: Any = field(default=None, repr=False)
    """A transport of httpx2, for tests and unusual networks."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", _check_url(self.url))
        if self.key is not None:
            _check_key(self.key)
        for name, least in (("timeout", 0.001), ("retry_for", 0.0)):
            object.__setattr__(self, name, checks.within(name, getattr(self, name), least, 86_400.0))
        if isinstance(self.verify, str) and not Path(self.verify).is_file():
            raise SettingError(f"verify must name a file with certificates, got {self.verify!r}.")

    def client_options(self, httpx: ModuleType) -> dict[str, Any]:
        """Return the options of an HTTP client."""
        headers = {"User-Agent": f"doublesampling/{__version__}"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        trusted = ssl.create_default_context(cafile=self.verify) if isinstance(self.verify, str) else self.verify
        return {
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout, connect=min(self.timeout, _CONNECT)),
            "follow_redirects": False,  # the key is for this address only
            "verify": trusted,
            "transport": self.transport,
        }


def _check_url(url: object) -> str:
    wanted = "the address of a service such as https://trials.example"
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        fine = (
            parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        )
    except ValueError:
        fine = False
    if not fine or parts is None or not isinstance(url, str):
        raise SettingError(f"url must be {wanted}, got {checks.shown(url)}.")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise SettingError(f"url must be {wanted}, without a user, a query or a fragment. Pass the key as key=.")
    return url.rstrip("/")


def _check_key(key: object) -> None:
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or " " in key or not key:
        raise SettingError("key must be an API key as `doublesampling key create` prints it, without blanks.")


class _Exchange:
    """What both senders share: the options of a request, and the meaning of its response or failure."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings, self.httpx, self.closed = settings, import_httpx(), False

    def request_options(self, call: Call[Any]) -> dict[str, Any]:
        """Return the arguments of the HTTP library for a call."""
        if self.closed:
            raise StateError(f"The connection to {self.settings.url} is closed. Make a new one with connect.")
        content = None if call.body is None else json.dumps(call.body, allow_nan=False).encode()
        headers = {**call.headers, **({} if content is None else {"Content-Type": "application/json"})}
        return {"method": call.method, "url": self.settings.url + call.path, "headers": headers, "content": content,
                "params": dict(call.query)}  # fmt: skip

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raise FailedAttemptError for what the HTTP library raises."""
        httpx, url = self.httpx, self.settings.url
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as problem:
            if isinstance(problem.__context__, ssl.SSLError) or "CERTIFICATE" in str(problem):
                raise FailedAttemptError(UnavailableError(f"{url} has no valid certificate: {problem}.")) from None
            message = f"{url} cannot be reached ({_reason(problem)}). Check the URL, and whether the service runs."
            raise FailedAttemptError(UnavailableError(message), again=True) from None
        except httpx.TimeoutException:
            message = f"{url} did not answer within {self.settings.timeout:g} s. The request may have been stored."
            raise FailedAttemptError(UnavailableError(message), again=True, unclear=True) from None
        except (httpx.NetworkError, httpx.RemoteProtocolError) as problem:
            message = f"{url} broke the connection off ({_reason(problem)}). The request may have been stored."
            raise FailedAttemptError(UnavailableError(message), again=True, unclear=True) from None
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise FailedAttemptError(UnexpectedResponseError(f"{url} cannot be used: {_reason(problem)}.")) from None

    def read(self, call: Call[T], response: Any, unclear: bool) -> T:
        """Return the result of a call; raise FailedAttemptError for an error, or for a server of another kind."""
        self.check(response.status_code, response.headers, response.content)
        try:
            content = response.text if call.text else json.loads(response.content)
            return call.parse(content, unclear)
        except DoubleSamplingError as refused:
            raise FailedAttemptError(refused) from None
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError):
            raise FailedAttemptError(unexpected(self.settings.url, "something else", response.status_code)) from None

    def check(self, status: int, headers: Any, body: bytes) -> None:
        """Raise FailedAttemptError unless a response has a status of success."""
        if not 200 <= status < 300:
            raise failure_from_response(status, headers, body, self.settings.url)


def _reason(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


class Sender(_Exchange):
    """Sends calls and waits for their results. Several threads may share it."""

    def __init__(self, settings: ConnectionSettings) -> None:
        super().__init__(settings)
        self._client = self.httpx.Client(**settings.client_options(self.httpx))

    def send(self, call: Call[T]) -> T:
        """Return the result of a call, after as many attempts as it takes or as the time allows."""
        attempts = Attempts(self.settings.retry_for)
        while True:
            try:
                with self.failures():
                    response = self._client.request(**self.request_options(call))
                return self.read(call, response, attempts.unclear)
            except FailedAttemptError as failed:
                found = self._recover(call, failed, attempts)
                if found is not None:
                    return found
                time.sleep(attempts.pause(failed))

    def _recover(self, call: Call[T], failed: FailedAttemptError, attempts: Attempts) -> T | None:
        lost = attempts.unclear and isinstance(failed.error, NameTakenError)
        return self.send(call.recover) if lost and call.recover is not None else None

    def download(self, call: Call[Any], file: IO[bytes]) -> None:
        """Write the response of a call to a file; a new attempt starts the file again."""
        attempts = Attempts(self.settings.retry_for)
        while True:
            file.seek(0)
            file.truncate()
            try:
                with self.failures(), self._client.stream(**self.request_options(call)) as response:
                    if response.status_code != 200:
                        response.read()
                        self.check(response.status_code, response.headers, response.content)
                    for piece in response.iter_bytes():
                        file.write(piece)
                return
            except FailedAttemptError as failed:
                time.sleep(attempts.pause(failed))

    def close(self) -> None:
        """Close all connections."""
        self.closed = True
        self._client.close()


class AsyncSender(_Exchange):
    """Sends calls with asyncio."""

    def __init__(self, settings: ConnectionSettings) -> None:
        super().__init__(settings)
        self._client = self.httpx.AsyncClient(**settings.client_options(self.httpx))

    async def send(self, call: Call[T]) -> T:
        """Return the result of a call, after as many attempts as it takes or as the time allows."""
        attempts = Attempts(self.settings.retry_for)
        while True:
            try:
                with self.failures():
                    response = await self._client.request(**self.request_options(call))
                return self.read(call, response, attempts.unclear)
            except FailedAttemptError as failed:
                found = await self._recover(call, failed, attempts)
                if found is not None:
                    return found
                await asyncio.sleep(attempts.pause(failed))

    async def _recover(self, call: Call[T], failed: FailedAttemptError, attempts: Attempts) -> T | None:
        lost = attempts.unclear and isinstance(failed.error, NameTakenError)
        return await self.send(call.recover) if lost and call.recover is not None else None

    async def download(self, call: Call[Any], file: IO[bytes]) -> None:
        """Write the response of a call to a file; a new attempt starts the file again."""
        attempts = Attempts(self.settings.retry_for)
        while True:
            file.seek(0)
            file.truncate()
            try:
                with self.failures():
                    async with self._client.stream(**self.request_options(call)) as response:
                        if response.status_code != 200:
                            await response.aread()
                            self.check(response.status_code, response.headers, response.content)
                        async for piece in response.aiter_bytes():
                            file.write(piece)
                return
            except FailedAttemptError as failed:
                await asyncio.sleep(attempts.pause(failed))

    async def close(self) -> None:
        """Close all connections."""
        self.closed = True
        await self._client.aclose()
