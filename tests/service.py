"""Helpers of the service's tests: an app over a store, a client in the same process, a server in another."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from starlette.testclient import TestClient

from doublesampling.live.stores import open_store
from doublesampling.service import keys
from doublesampling.service.app import create_app
from tests import soak

HERE = "http://localhost"


@contextlib.contextmanager
def client(storage: str, **settings: Any) -> Iterator[Any]:
    """A client of an app of its own."""
    with TestClient(create_app(storage, **settings), base_url=HERE, client=("127.0.0.1", 50000)) as made:
        yield made


def make_key(storage: str, role: str, experiment: str | None = None) -> dict[str, str]:
    """The header that carries a new key."""
    from doublesampling.live.stores import upgrade

    store = open_store(storage)
    upgrade.ensure(store)
    return {"Authorization": f"Bearer {keys.create(store, role, experiment)[1]}"}


def trial(c: Any, name: str = "trial", headers: dict[str, str] | None = None, **more: Any) -> str:
    """Create an experiment; returns its address."""
    made = c.post("/v1/experiments", json={"name": name, "arms": ["a", "b", "c"], "seed": 1, **more}, headers=headers)
    assert made.status_code == 201, made.text
    return f"/v1/experiments/{name}"


def asked(c: Any, address: str, unit: str | None = None, **more: Any) -> str:
    """Ask; returns the id."""
    made = c.post(f"{address}/decisions", json={"unit": unit}, **more)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _serve(words: list[str]) -> None:
    """Run the command in a process that was forked with everything loaded."""
    from doublesampling.cli.main import main

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(main(words))


def start(storage: str, port: int, *options: str) -> Any:
    """Start a server process that is forked from one that has loaded and compiled everything."""
    words = ["serve", "--storage", storage, "--port", str(port), *options]
    process = soak.processes().Process(target=_serve, args=(words,), daemon=True)
    process.start()
    return process


@contextlib.contextmanager
def served(storage: str, *options: str) -> Iterator[tuple[str, Any]]:
    """A server process of its own; its address, and the process."""
    port = free_port()
    process = start(storage, port, *options)
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.terminate()
        process.join(30)


@contextlib.contextmanager
def served_by_command(storage: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The command as people type it, with what it prints; its address, and the process."""
    port = free_port()
    command = [sys.executable, "-m", "doublesampling.cli.main", "serve", "--storage", storage, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def wait_until_up(address: str, process: Any, seconds: float = 60.0) -> None:
    """Wait for the first answer of a server, or raise RuntimeError where it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended = process.poll() if isinstance(process, subprocess.Popen) else process.exitcode
        if ended is not None:
            raise RuntimeError(f"the server ended with status {ended}")
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(f"{address}/healthz"):
            return
        time.sleep(0.02)
    raise RuntimeError("the server did not come up")


def problem(answer: Any, status: int, code: str) -> str:
    """Check that an answer is a problem of this kind, and tells nothing of the server; returns its detail."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    found = answer.json()
    assert set(found) >= {"type", "title", "status", "detail", "code"}
    assert (found["status"], found["code"]) == (status, code)
    assert "Traceback" not in answer.text
    assert ".db" not in answer.text
    return str(found["detail"])
