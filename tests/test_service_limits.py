"""Denial of service: endless headers, half-sent requests, idle sockets and clients that do not read are cut off."""

import asyncio
import contextlib
import json
import resource
import socket
import threading
import time
import urllib.request
from typing import Any

import pytest
import uvicorn

from doublesampling.errors import SettingError
from doublesampling.service import protocol
from doublesampling.service.protocol import Connections, Limits, fit_to_files, limited_protocol
from tests.service import free_port, served

GREETING = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


RELEASED = threading.Event()  # requests to /wait,0 are answered when it is set


async def echo(scope, receive, send):
    """An app that reads the body, waits where the path says so, and answers as many bytes as it says."""
    if scope["type"] == "lifespan":
        return
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    wait, size = scope["path"][1:].split(",")
    while wait == "wait" and not RELEASED.is_set():
        await asyncio.sleep(0.01)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(int(size) // 65536):
        await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
    await send({"type": "http.response.body", "body": b"%d" % len(body)})


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Connections past their deadline are looked for every tenth of a second."""
    monkeypatch.setattr(protocol, "_SWEEP", 0.1)


@contextlib.contextmanager
def limited(app=echo, **limits):
    """A server with these limits in a thread of this process; its port and its table of connections."""
    RELEASED.clear()
    kind, port = limited_protocol(Limits(**limits)), free_port()
    config = uvicorn.Config(app, port=port, log_level="critical", http=kind, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        yield port, kind.table
    finally:
        server.should_exit = True
        thread.join(20)


def connect(port):
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return made


def until_closed(s):
    """What a server says until it closes the connection."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while part := s.recv(65536):
            said += part
    return said


def get(port, path="/0,0", timeout=30):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout) as answer:
        return answer.status


@pytest.mark.parametrize("line", [b"X-A: " + b"a" * 1000 + b"\r\n", b"X-A: a\r\n", b"a"])
def test_an_endless_header_is_refused(line):
    """Many lines, long lines, and one line that never ends."""
    with limited() as (port, _), connect(port) as s:
        s.sendall(GREETING if line != b"a" else b"GET /")
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 50_000_000:
                s.sendall(line * 20)
                sent += 20 * len(line)
        assert sent < 20_000_000  # what the sockets' buffers swallow, and no more
        with contextlib.suppress(ConnectionError):
            said = s.recv(100)
            assert said[:12] in (b"HTTP/1.1 431", b"")
        assert get(port) == 200


def test_a_large_header_that_comes_at_once_is_refused():
    with limited() as (port, _):
        for lines in (b"X-A: " + b"a" * 40_000 + b"\r\n", b"X-A: a\r\n" * 101):
            with connect(port) as s:
                s.sendall(b"GET /0,0 HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n")
                assert until_closed(s).startswith(b"HTTP/1.1 431")


HALF = {
    "nothing": b"",
    "blank lines": b"\r\n\r\n",
    "half a header": GREETING,
    "half a body": b"POST /0,0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf",
    "half a chunk": b"POST /0,0 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf",
}


@pytest.mark.parametrize("what", HALF)
def test_what_is_half_sent_is_closed_in_time(what):
    with limited(header_seconds=0.3, body_seconds=0.3) as (port, table), connect(port) as s:
        s.sendall(HALF[what])
        assert until_closed(s) == b""
        assert table.closed_early == 1
        assert get(port) == 200


def test_a_header_that_comes_in_drops_is_closed_in_time():
    """Slowloris: each drop is in time, the header is not."""
    with limited(header_seconds=0.5) as (port, table), connect(port) as s:
        begun = time.monotonic()
        s.sendall(GREETING)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < begun + 20:
                s.sendall(b"X")
                time.sleep(0.05)
        assert table.closed_early == 1


def test_a_body_of_chunk_extensions_is_refused():
    """Extensions of chunks are no part of the body that the middleware counts."""
    with limited(body_bytes=100_000) as (port, _), connect(port) as s:
        s.sendall(b"POST /0,0 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;a=")
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 50_000_000:
                s.sendall(b"a" * 10_000)
                sent += 10_000
        assert sent < 20_000_000


@contextlib.contextmanager
def busy(port, table, count):
    """Connections with a request under way, which is answered as soon as RELEASED is set."""
    with contextlib.ExitStack() as opened:
        made = [opened.enter_context(connect(port)) for _ in range(count)]
        for s in made:
            s.sendall(b"GET /wait,0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        until = time.monotonic() + 20
        while (table.waiting or table.per_address.total() < count) and time.monotonic() < until:
            time.sleep(0.01)
        yield made


def test_idle_connections_make_room_and_requests_under_way_are_not_cut_off():
    with limited(connections=20) as (port, table), busy(port, table, 5) as working, contextlib.ExitStack() as opened:
        for _ in range(100):
            opened.enter_context(connect(port))
        assert get(port) == 200
        assert table.closed_early >= 80
        RELEASED.set()
        assert all(until_closed(s).startswith(b"HTTP/1.1 200") for s in working)


def test_where_every_connection_is_busy_the_next_is_told_so():
    with limited(connections=3) as (port, table), busy(port, table, 3) as working:
        with connect(port) as s:
            assert until_closed(s).startswith(b"HTTP/1.1 503")
        RELEASED.set()
        assert all(until_closed(s).startswith(b"HTTP/1.1 200") for s in working)
        assert get(port) == 200


def test_a_client_that_does_not_read_is_closed():
    with limited(write_seconds=0.3) as (port, table), connect(port) as s:
        s.sendall(b"GET /0,50000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until = time.monotonic() + 20
        while table.per_address and time.monotonic() < until:
            time.sleep(0.05)
        assert not table.per_address


def test_connections_are_kept_and_used_again():
    with limited(header_seconds=0.4, idle_seconds=30) as (port, table), connect(port) as s:
        for i in range(4):
            body = b"x" * (100_000 * i)
            s.sendall(b"POST /0,0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            said = b""
            while not said.endswith(b"0\r\n\r\n"):
                said += s.recv(1000)
            assert f"{len(body)}".encode() in said
            time.sleep(0.3)  # longer than a header may take in all, and no header has begun
        assert table.closed_early == 0


class Fake:
    """A connection from anywhere."""

    def __init__(self, address, loop):
        self.address, self.loop, self.transport, self.deadline = address, loop, self, 1e18
        self.open = True

    def abort(self):
        self.open = False


def test_an_address_has_its_own_limit_unless_many_share_it():
    loop = asyncio.new_event_loop()
    table: Any = Connections(Limits(connections=100, per_address=3, exempt=("10.1.0.0/16",)))
    try:
        for address, kept in (("192.0.2.1", 3), ("2001:db8::7", 3), ("127.0.0.1", 8), ("::1", 8), ("10.1.2.3", 8)):
            made = [Fake(address, loop) for _ in range(8)]
            assert all(table.admit(each) for each in made)
            assert sum(each.open for each in made) == kept
            assert made[-1].open  # the oldest go, the newest stays
        table.waiting.clear()
        assert not table.admit(Fake("192.0.2.1", loop))  # all of them busy: refused
        assert table.admit(Fake("192.0.2.2", loop))
    finally:
        table._sweeper.cancel()
        loop.close()


def test_no_more_connections_than_files(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (600, 600))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert fit_to_files(Limits(connections=1000)).connections == 344


def test_a_proxy_must_be_an_address(capsys, sqlite_url):
    from doublesampling.cli.main import main

    assert main(["serve", "--storage", sqlite_url, "--proxy", "front.example"]) == 1
    assert "--proxy takes an address" in capsys.readouterr().err
    assert issubclass(SettingError, ValueError)


def test_two_thousand_idle_sockets_and_endless_headers_stop_nobody(sqlite_url):
    """A short form of benchmarks/load.py: the real command, its own limits."""
    import doublesampling as ds

    ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=sqlite_url)
    many = min(2050, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    with served(sqlite_url) as (address, _), contextlib.ExitStack() as opened:
        port = int(address.rpartition(":")[2])
        for _ in range(many):
            opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        stop = threading.Event()

        def endless():
            while not stop.is_set():
                with contextlib.suppress(OSError), connect(port) as s:
                    s.sendall(GREETING)
                    while not stop.is_set():
                        s.sendall(b"X-A: " + b"a" * 60_000 + b"\r\n")

        threads = [threading.Thread(target=endless, daemon=True) for _ in range(5)]
        for thread in threads:
            thread.start()
        try:
            assert get(port, "/healthz", timeout=20) == 200
            data = json.dumps({"unit": "u"}).encode()
            wish = urllib.request.Request(
                f"{address}/v1/experiments/trial/decisions", data, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(wish, timeout=20) as answer:
                assert answer.status == 201
        finally:
            stop.set()
            for thread in threads:
                thread.join(30)
