"""The client when something fails: lost responses count nothing twice, and every failure has a typed error."""

import asyncio
import socket
import threading
import time
from typing import Any

import httpx2
import pytest

import doublesampling as ds
from doublesampling import errors
from doublesampling.client import (
    ServiceError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    UnexpectedResponseError,
)
from doublesampling.client.errors import AGAIN, FailedAttemptError
from doublesampling.client.retries import FIRST, LONGEST, Attempts
from doublesampling.service.app import create_app
from doublesampling.service.problems import STATUS
from tests.client import Transport, answering, connected, lost, problem, refused, service
from tests.service import HERE, free_port

SECRET = "ds_secret"


@pytest.fixture
def quick(monkeypatch):
    """Waits between attempts take no time; the list of their lengths."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def writes() -> dict[str, Any]:
    """Every call that writes, from a connection, an experiment, the id of a told and of a waiting decision."""
    return {
        "ask": lambda c, e, told, open_: e.ask(),
        "ask unit": lambda c, e, told, open_: e.ask(unit="new"),
        "ask_many": lambda c, e, told, open_: e.ask_many(3),
        "tell": lambda c, e, told, open_: e.tell(open_, 1.0),
        "tell_many": lambda c, e, told, open_: e.tell_many([(open_, 1.0)]),
        "amend": lambda c, e, told, open_: e.amend(told, 0.0, reason="typo"),
        "withdraw": lambda c, e, told, open_: e.withdraw(told, reason="typo"),
        "void": lambda c, e, told, open_: e.void(told, reason="typo"),
        "add_history": lambda c, e, told, open_: e.add_history(["a", "b"], [1.0, 0.0]),
        "pause": lambda c, e, told, open_: e.pause("audit"),
        "add_arm": lambda c, e, told, open_: e.add_arm("d"),
        "drop_arm": lambda c, e, told, open_: e.drop_arm("b", "bad"),
        "create": lambda c, e, told, open_: c.create("other", arms=["a", "b"], policy=ds.TopTwo()),
    }


@pytest.fixture(scope="module")
def inner(tmp_path_factory):
    """A service for many small tests: its store, and its transport."""
    url = f"sqlite:///{tmp_path_factory.mktemp('client') / 'trial.db'}"
    with service(url) as transport:
        yield url, transport


@pytest.mark.parametrize("losses", [1, 3])
@pytest.mark.parametrize("what", writes())
def test_a_lost_response_counts_nothing_twice(what, losses, inner, quick):
    """The service stores the request, the client never sees the response, and sends it again."""
    url, transport = inner
    name = f"{what} {losses}"
    local = ds.Experiment.create(name, arms=["a", "b", "c"], storage=url, seed=1)
    told, open_ = (d.id for d in local.ask_many(2))
    local.tell(told, 1.0)
    before, stored = len(local.audit()), len(ds.Experiment.list(url))
    flaky = Transport(transport)
    with connected(flaky) as connection:
        exp = connection.load(name)
        flaky.failures = [lost] * losses
        sent = len(flaky.requests)
        call = writes()[what] if what != "create" else lambda c, *_: c.create(f"new {name}", arms=["a", "b"])
        result = call(connection, exp, told, open_)
        number = result.ask().number if what == "create" else 1
    rows = {"ask_many": 3, "add_history": 3, "create": 0}.get(what, 1)
    assert len(local.audit()) == before + rows
    assert len(ds.Experiment.list(url)) == stored + (what == "create")
    attempts = flaky.requests[sent : sent + losses + 1]
    assert len(flaky.requests) == sent + len(attempts) + 2 * (what == "create")
    assert len({(request.headers.get("idempotency-key"), request.content) for request in attempts}) == 1
    assert len(quick) == losses
    if what == "create":
        assert result.name == f"new {name}"
        assert number == 1
    elif what == "add_history":
        assert result == 2
    elif what in ("pause", "add_arm", "drop_arm"):
        assert result is True  # as it would have been without the loss
    assert local.replay().agrees


def test_a_change_that_somebody_reversed_is_not_made_again(sqlite_url, quick):
    """A pause whose response was lost, and which somebody ended before the second attempt, stays ended."""
    local = ds.Experiment.create("trial", arms=["a", "b", "c"], storage=sqlite_url)

    def reversed_(request: Any, service: Any) -> Any:
        service.handle_request(request)
        local.resume("it was a mistake")
        raise httpx2.ReadTimeout("no response")

    with service(sqlite_url) as transport:
        flaky = Transport(transport)
        with connected(flaky) as connection:
            exp = connection.load("trial")
            flaky.failures = [reversed_]
            assert exp.pause() is True
            assert exp.status()["status"] == "running"
            assert local.audit()["kind"].tolist() == ["created", "pause", "resume"]


def test_a_name_that_somebody_else_took_is_refused(sqlite_url, quick):
    """An unclear attempt to create is followed by a refusal: the experiment of that name is not ours."""
    with service(sqlite_url) as transport:
        flaky = Transport(transport)
        with connected(flaky) as connection:
            connection.create("trial", arms=["a", "b"], seed=1)
            flaky.failures = [answering(502, b"bad gateway")]
            with pytest.raises(errors.NameTakenError):
                connection.create("trial", arms=["a", "b"], seed=2)


def test_attempts_with_lost_requests_and_proxies(sqlite_url, quick):
    """A request that never arrived is sent again too; a proxy that answers for a restarting service is waited for."""
    local = ds.Experiment.create("trial", arms=["a", "b"], storage=sqlite_url)
    html = {"content_type": "text/html"}
    with service(sqlite_url) as transport:
        flaky = Transport(transport)
        with connected(flaky) as connection:
            exp = connection.load("trial")
            flaky.failures = [
                refused,
                answering(502, b"<h1>Bad Gateway</h1>", **html),
                answering(503, b"", retry_after="2"),
                answering(504, b"<h1>Gateway Timeout</h1>", **html),
                problem(503, "storage-busy", retry_after="1"),
                problem(429, "too-many", retry_after="1"),
                problem(503, "timeout"),
                lost,
            ]
            exp.ask()
            assert not flaky.failures
        assert len(local.decisions()) == 1
        assert len(quick) == 8
        assert quick[2] >= 2.0  # as the service asked
        assert quick[4] >= 1.0


@pytest.mark.parametrize("code", sorted(STATUS))
def test_every_code_of_the_service_has_an_error(code, inner, quick):
    """Errors that will not pass by themselves are raised at once, the others after the time for retries."""
    flaky = Transport(inner[1])
    with connected(flaky, retry_for=0.0) as connection:
        flaky.failures = [problem(STATUS[code], code)]
        with pytest.raises(errors.DoubleSamplingError) as raised:
            connection.list()
        assert raised.value.code == code
        assert str(raised.value) == "no"
        flaky.failures = [problem(STATUS[code], code)] * 3
    flaky.failures = []
    with connected(flaky) as connection:
        sent = len(flaky.requests)
        flaky.failures = [problem(STATUS[code], code)]
        if code in AGAIN:
            connection.list()
            assert len(flaky.requests) == sent + 2
        else:
            with pytest.raises(errors.DoubleSamplingError):
                connection.list()
            assert len(flaky.requests) == sent + 1


def test_codes_become_the_classes_of_this_package(inner, quick):
    wanted: dict[str, type[errors.DoubleSamplingError]] = {
        "conflict": errors.ConflictError,
        "storage-busy": errors.StorageBusyError,
        "other-experiment": errors.OtherExperimentError,
        "too-many": TooManyRequestsError,
        "unauthorized": UnauthorizedError,
        "timeout": UnavailableError,
        "too-large": ServiceError,
        "of-the-future": ServiceError,
    }
    flaky = Transport(inner[1])
    with connected(flaky, retry_for=0.0) as connection:
        for code, kind in wanted.items():
            flaky.failures = [problem(STATUS.get(code, 418), code)]
            with pytest.raises(kind) as raised:
                connection.list()
            assert type(raised.value) is kind
            assert raised.value.code == code


class TestWrongAddresses:
    @pytest.mark.parametrize(
        "other",
        [
            answering(200, b"<html>Welcome</html>", content_type="text/html"),
            answering(200, []),
            answering(200, {"role": "admin"}),
            answering(200, b""),
            answering(404, b"<h1>Not Found</h1>", content_type="text/html"),
            answering(404, {"detail": "Not Found"}),
            answering(401, b"", www_authenticate="Basic"),
            answering(301, b"", location="https://elsewhere.example/"),
            answering(500, b"oops"),
        ],
    )
    def test_a_server_of_another_kind(self, other, quick):
        transport = Transport(None, other)
        with pytest.raises(UnexpectedResponseError) as raised:
            connected(transport, SECRET)
        assert len(transport.requests) == 1  # no redirect is followed, nothing is tried again
        assert HERE in str(raised.value)
        assert SECRET not in str(raised.value)
        if raised.value.status == 301:
            assert "elsewhere.example" in str(raised.value)

    def test_nobody_listens(self):
        with pytest.raises(UnavailableError, match="cannot be reached") as raised:
            ds.connect(f"http://127.0.0.1:{free_port()}", SECRET, retry_for=0.3)
        assert raised.value.code == "unavailable"
        assert "attempts in" in raised.value.__notes__[0]
        assert raised.value.__cause__ is None

    def test_an_unknown_host(self):
        with pytest.raises(UnavailableError, match="cannot be reached"):
            ds.connect("http://nowhere.invalid", retry_for=0.0)

    def test_no_tls_where_tls_is_wanted(self):
        with _listening(b"SSH-2.0-OpenSSH_9.6\r\n") as port, pytest.raises(UnavailableError):
            ds.connect(f"https://127.0.0.1:{port}", retry_for=0.0)

    def test_no_http_at_all(self):
        with _listening(b"SSH-2.0-OpenSSH_9.6\r\n") as port, pytest.raises(UnavailableError, match="broke"):
            ds.connect(f"http://127.0.0.1:{port}", retry_for=0.0)

    def test_no_answer(self):
        with _listening(None) as port, pytest.raises(UnavailableError, match=r"within 0\.2 s"):
            ds.connect(f"http://127.0.0.1:{port}", timeout=0.2, retry_for=0.0)


class _listening:
    """A server that is no web server: it sends a line, or nothing, whatever it is asked."""

    def __init__(self, line: bytes | None) -> None:
        self._line, self._socket, self._held = line, socket.create_server(("127.0.0.1", 0)), list[Any]()

    def __enter__(self) -> int:
        threading.Thread(target=self._run, daemon=True).start()
        return int(self._socket.getsockname()[1])

    def _run(self) -> None:
        while True:
            try:
                found = self._socket.accept()[0]
            except OSError:
                return
            if self._line is None:
                self._held.append(found)
                continue
            found.sendall(self._line)
            found.recv(1000)
            found.close()

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        for each in self._held:
            each.close()


def test_an_export_that_breaks_off_starts_again(sqlite_url, tmp_path, quick):
    exp = ds.Experiment.create("trial", arms=["a", "b"], storage=sqlite_url)
    exp.ask_many(3)

    class Broken(httpx2.SyncByteStream):
        def __iter__(self):
            yield b"half a line"
            raise httpx2.RemoteProtocolError("peer closed connection")

    broken = [lambda request, inner: httpx2.Response(200, stream=Broken()), problem(429, "too-many")]
    with service(sqlite_url) as transport:
        flaky = Transport(transport)
        with connected(flaky, retry_for=30.0) as connection:
            remote = connection.load("trial")
            flaky.failures = list(broken)
            path = remote.export("csv", tmp_path / "t.csv")
            exp.export("csv", tmp_path / "u.csv")
            assert (tmp_path / "t.csv").read_bytes() == (tmp_path / "u.csv").read_bytes()
            flaky.failures = [problem(403, "forbidden")]
            with pytest.raises(ServiceError):
                remote.export("csv", path, force=True)
        assert {each.name for each in tmp_path.iterdir() if "csv" in each.name} == {"t.csv", "u.csv"}


def test_asyncio_tries_again_too(sqlite_url, monkeypatch):
    app = create_app(sqlite_url)
    local = ds.Experiment.create("trial", arms=["a", "b", "c"], storage=sqlite_url)
    waits: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await real(0)

    class Flaky(httpx2.AsyncBaseTransport):
        def __init__(self) -> None:
            self.inner, self.lost = httpx2.ASGITransport(app, client=("127.0.0.1", 1)), 0

        async def handle_async_request(self, request):
            response = await self.inner.handle_async_request(request)
            if self.lost:
                self.lost -= 1
                raise httpx2.ReadError("reset")
            return response

    async def work() -> None:
        flaky = Flaky()
        async with ds.connect_async(HERE, transport=flaky) as connection:
            exp = await connection.load("trial")
            monkeypatch.setattr("doublesampling.client.transport.asyncio.sleep", sleep)
            flaky.lost = 2
            made = await exp.ask()
            flaky.lost = 1
            await exp.tell(made.id, 1.0)
            flaky.lost = 1
            assert await exp.add_arm("d") is True
            flaky.lost = 1
            assert (await connection.create("other", arms=["a", "b"])).name == "other"

    asyncio.run(work())
    assert len(waits) == 5
    assert local.audit()["kind"].tolist() == ["created", "asked", "told", "add_arm"]
    app.state.service.close()


def test_waits_double_up_to_a_limit_and_end_with_the_time():
    now, failure = 0.0, FailedAttemptError(errors.StorageBusyError("busy"), again=True)
    attempts, waits = Attempts(60.0, clock=lambda: now, uniform=lambda low, high: high), []
    while now < 60.0:
        waits.append(attempts.pause(failure))
        now += waits[-1]
    with pytest.raises(errors.StorageBusyError) as raised:
        attempts.pause(failure)
    assert raised.value.__notes__ == [f"{len(waits) + 1} attempts in 60.0 s."]
    assert waits[:4] == [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST]
    assert max(waits) == LONGEST
    assert sum(waits) == pytest.approx(60.0)
    assert not attempts.unclear
