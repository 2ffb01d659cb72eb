"""An HTTP protocol with connection limits: header size and time, idle time, connections in total and per address.

uvicorn waits without limit for the header of a new connection, and accepts a header of any size. This protocol closes
connections that take too long or send too much. Where too many connections are open, it closes the one that has waited
longest without a complete request, so that idle sockets cannot block others. Requests in progress are never cut off.
"""

import asyncio
import ipaddress
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SWEEP = 0.5  # seconds between two searches for connections past their deadline
_PIPELINE = 16  # requests that a connection may send in advance


@dataclass(frozen=True)
class Limits:
    """The limits of connections. ``exempt`` addresses, such as a proxy's, and loopback have no limit per address."""

    connections: int = 1000
    per_address: int = 100
    header_bytes: int = 32 * 1024
    header_lines: int = 100
    header_seconds: float = 10.0
    body_bytes: int = 4 << 20
    """Bytes of a body as transferred, chunk sizes included; the middleware limits the decoded body."""
    body_seconds: float = 30.0
    idle_seconds: int = 30
    write_seconds: float = 60.0
    """How long a client may leave a response unread."""
    exempt: tuple[str, ...] = ()


class Connections:
    """The open connections of one server. ``waiting`` holds those without a complete request, oldest first."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.waiting: dict[LimitedProtocol, None] = {}
        self.per_address: Counter[str] = Counter()
        self.closed_early = 0
        self._networks = [ipaddress.ip_network(each, strict=False) for each in limits.exempt]
        self._sweeper: asyncio.TimerHandle | None = None

    def admit(self, connection: "LimitedProtocol") -> bool:
        """Count a new connection and close an idle one where there are too many; return False where none is idle."""
        if self._sweeper is None:
            self._sweeper = connection.loop.call_later(_SWEEP, self._sweep, connection.loop)
        address = connection.address
        self.per_address[address] += 1
        self.waiting[connection] = None
        if self.per_address[address] > self.limits.per_address and not self._is_exempt(address):
            return self._make_room(connection, address)
        return self.per_address.total() <= self.limits.connections or self._make_room(connection, None)

    def leave(self, connection: "LimitedProtocol") -> None:
        """Remove a closed connection from the counts."""
        self.waiting.pop(connection, None)
        self.per_address[connection.address] -= 1
        if self.per_address[connection.address] <= 0:
            del self.per_address[connection.address]

    def _is_exempt(self, address: str) -> bool:
        try:
            place = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return True  # a Unix socket
        place = getattr(place, "ipv4_mapped", None) or place
        return place.is_loopback or any(place in network for network in self._networks)

    def _make_room(self, newcomer: "LimitedProtocol", address: str | None) -> bool:
        """Close the connection that has waited longest, of this address or of any; return whether there was one."""
        for other in self.waiting:
            if other is not newcomer and (address is None or other.address == address):
                self.close(other)
                return True
        return False

    def close(self, connection: "LimitedProtocol") -> None:
        """Close a connection that has no complete request."""
        self.closed_early += 1
        self.waiting.pop(connection, None)
        connection.transport.abort()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        for connection in [each for each in self.waiting if each.deadline < now]:
            self.close(connection)
        self._sweeper = loop.call_later(_SWEEP, self._sweep, loop) if self.per_address else None


class LimitedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with limits; ``limited_protocol`` returns the class that a server uses."""

    table: Connections

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.address = ""
        self.deadline = 0.0
        self._refusal: bytes | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        """Reset the counts for a new request."""
        self._in_head, self._untouched, self._bytes, self._lines, self._head = True, True, 0, 0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection and set the deadline of its first header."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.deadline = time.monotonic() + self.table.limits.header_seconds
        if not self.table.admit(self):
            self.table.waiting.pop(self, None)
            self._refuse(b"503 Service Unavailable", b"Too many connections. Try again later.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the counts."""
        self.table.leave(self)
        self._clear_write_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read, and refuse a header or body that is too large."""
        limits = self.table.limits
        self._bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._bytes > limits.header_bytes:
            self._refuse(b"431 Request Header Fields Too Large", b"The header of the request is too large.")
        elif self._bytes > limits.header_bytes + limits.body_bytes or len(self.pipeline) > _PIPELINE:
            self._refuse(b"413 Content Too Large", b"The request is too large.")

    def on_message_begin(self) -> None:
        """Set the deadline of the header at the first bytes of a request."""
        super().on_message_begin()
        self._untouched = False
        self.deadline = time.monotonic() + self.table.limits.header_seconds

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the lines and bytes of the header, which may arrive in one piece."""
        self._lines += 1
        self._head += len(name) + len(value)
        if self._lines > self.table.limits.header_lines or self._head > self.table.limits.header_bytes:
            self._refusal = b"431 Request Header Fields Too Large"
            raise ValueError("the header is too large")  # the parser turns it into send_400_response
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Set the deadline of the body at the end of the header."""
        self._in_head = False
        self.deadline = time.monotonic() + self.table.limits.body_seconds
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Exempt the connection from closing while its request is in progress."""
        super().on_message_complete()
        self._begin()
        self.table.waiting.pop(self, None)
        if self.cycle.response_complete:  # it was refused before its body arrived
            self._wait()

    def on_response_complete(self) -> None:
        """Wait for the next request, as the newest of the waiting connections."""
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self._wait()

    def _wait(self) -> None:
        self.table.waiting.pop(self, None)
        self.table.waiting[self] = None
        if self._untouched:
            self.deadline = time.monotonic() + self.table.limits.idle_seconds

    def pause_writing(self) -> None:
        """Set a deadline for a client that does not read the response."""
        super().pause_writing()
        self._clear_write_deadline()
        self._stalled = self.loop.call_later(self.table.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Clear the deadline once the client reads again."""
        super().resume_writing()
        self._clear_write_deadline()

    def _clear_write_deadline(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, and close the connection."""
        self._refuse(self._refusal or b"400 Bad Request", msg.encode("ascii", "replace"))

    def _refuse(self, status: bytes, text: bytes) -> None:
        if self.transport.is_closing():
            return
        self.transport.write(
            b"HTTP/1.1 " + status + b"\r\ncontent-type: text/plain; charset=utf-8\r\nretry-after: 1\r\n"
            b"content-length: " + str(len(text)).encode() + b"\r\nconnection: close\r\n\r\n" + text
        )
        self.transport.close()


def limited_protocol(limits: Limits) -> type[LimitedProtocol]:
    """Return a protocol class for one server, with its own count of connections."""
    return type("ServerProtocol", (LimitedProtocol,), {"table": Connections(limits)})


def fit_to_files(limits: Limits) -> Limits:
    """Return the limits with no more connections than open files are allowed; raise the file limit where possible."""
    try:
        import resource
    except ImportError:  # Windows
        return limits
    from dataclasses import replace

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
        soft = max(soft, most)
    if soft == resource.RLIM_INFINITY:
        return limits
    return replace(limits, connections=max(16, min(limits.connections, soft - 256)))
