"""Measure throughput and latency of the service, and whether acknowledged rows survive `kill -9`.

Run as `python -m benchmarks.load` (part of `make soak`). A real server process, 32 connections from another process.
First the effect of dashboards, keys, attacks and long reads on writers (benchmarks/interference.py); at the end
the first paint of the dashboard over 10^6 stored decisions, where Chromium is installed.
"""

import argparse
import asyncio
import contextlib
import datetime
import http.client
import json
import multiprocessing
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

import doublesampling as ds


def say(text: str) -> None:
    print(text, flush=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def served(
    url: str, environment: dict[str, str] | None = None, seconds: float = 60.0
) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Yield the address of a new server process."""
    port = free_port()
    command = [sys.executable, "-m", "doublesampling.cli.main", "serve", "--storage", url, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | (environment or {}))
    try:
        wait_until_up(port, seconds)
        yield port, process
    finally:
        process.terminate()
        process.wait(30)


def wait_until_up(port: int, seconds: float = 60.0) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                connection.close()
                return
        time.sleep(0.05)
    raise RuntimeError("the server did not come up")


@dataclass
class Pressed:
    """What the writers measured: seconds per request, acknowledged ids, and times."""

    times: list[float] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    took: float = 0.0


class Connection:
    """A minimal HTTP client, so that the server is what is measured."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str | None = None) -> None:
        self._reader, self._writer = reader, writer
        self._key = "" if token is None else f"Authorization: Bearer {token}\r\n"

    async def _send(self, method: str, path: str, body: bytes, more: str = "") -> tuple[bytes, bytes]:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{self._key}{more}\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if answer[9:12] == b"304":
            return answer, b""
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        read = await self._reader.readexactly(length)
        if answer[9:12] not in (b"200", b"201"):
            raise RuntimeError(f"{answer[:20]!r} {read[:300]!r}")
        return answer, read

    async def call(self, method: str, path: str, content: Any) -> Any:
        """Send JSON and return the JSON response."""
        return json.loads((await self._send(method, path, json.dumps(content).encode()))[1])

    async def fetch(self, path: str, tags: dict[str, str]) -> bool:
        """Get a resource with its ETag; return whether it has changed."""
        answer, _ = await self._send("GET", path, b"", f"If-None-Match: {tags.get(path, '-')}\r\n")
        tags[path] = answer.lower().partition(b"etag: ")[2].partition(b"\r")[0].decode()
        return answer[9:12] == b"200"


async def pairs(port: int, worker: int, until: float, found: "Pressed", token: str | None) -> None:
    """Ask and tell over one connection until the deadline, or until the server is gone."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):  # the server was killed
        connection = Connection(*await asyncio.open_connection("127.0.0.1", port), token)
        turn, times, acknowledged, ended = 0, found.times, found.acknowledged, found.ended
        while time.perf_counter() < until:
            turn += 1
            begun = time.perf_counter()
            wish = {"unit": f"{worker}-{turn}-{time.time_ns()}"}
            made = await connection.call("POST", "/v1/experiments/load/decisions", wish)
            middle = time.perf_counter()
            path = f"/v1/experiments/load/decisions/{made['id']}/outcome"
            await connection.call("PUT", path, {"reward": float(turn % 3 == 0)})
            times += [middle - begun, time.perf_counter() - middle]
            acknowledged.append(made["id"])
            ended.append(time.perf_counter())


def crowd(port: int, connections: int, seconds: float, answers: Any, tokens: list[str] | None = None) -> None:
    """Open many connections in one process, which use the keys in turn."""
    found = Pressed()

    async def everyone() -> None:
        until = time.perf_counter() + seconds
        given = [None if tokens is None else tokens[i % len(tokens)] for i in range(connections)]
        await asyncio.gather(*(pairs(port, i, until, found, token) for i, token in enumerate(given)))

    begun = time.perf_counter()
    uvloop.run(everyone())
    found.took = time.perf_counter() - begun
    answers.put(found)


def press(port: int, connections: int, seconds: float, tokens: list[str] | None = None) -> "Pressed":
    """Ask and tell from a separate process."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=crowd, args=(port, connections, seconds, answers, tokens), daemon=True)
    process.start()
    found: Pressed = answers.get(timeout=seconds + 120)
    process.join()
    return found


def throughput(url: str, connections: int, seconds: float) -> None:
    ds.Experiment.create("load", arms=["a", "b", "c"], seed=1, storage=url)
    with served(url) as (port, _):
        press(port, connections, 2.0)
        found = press(port, connections, seconds)
    p50, p99, most = np.percentile(1000 * np.array(found.times), [50, 99, 100])
    say(
        f"  {connections} connections, {found.took:.0f} s: {len(found.acknowledged) / found.took:.0f} ask+tell pairs "
        "per second; "
        f"per request median {p50:.0f} ms, p99 {p99:.0f} ms, slowest {most:.0f} ms"
    )


def kills(url: str, connections: int, times: int) -> None:
    """Kill the server under load; every acknowledged outcome must be stored."""
    ds.Experiment.create("load", arms=["a", "b", "c"], seed=1, storage=url)
    context = multiprocessing.get_context("spawn")
    told: set[str] = set()
    for _ in range(times):
        with served(url) as (port, process):
            answers = context.Queue()
            worker = context.Process(target=crowd, args=(port, connections, 60.0, answers), daemon=True)
            worker.start()
            time.sleep(2.5)
            process.send_signal(signal.SIGKILL)
            told |= set(answers.get(timeout=120).acknowledged)
            worker.join()
    exp = ds.Experiment.load("load", storage=url)
    frame = exp.decisions()
    present = set(frame[frame["status"] == "told"]["id"])
    say(
        f"  {times} kill -9 of the server under load: {len(told)} outcomes acknowledged, {len(told - present)} lost, "
        f"{len(present)} present, replay agrees: {exp.replay().agrees}"
    )
    if told - present:
        raise SystemExit("an acknowledged outcome was lost")


def store_many(url: str, size: int) -> None:
    """Store an experiment with this many decisions and outcomes."""
    begun = time.perf_counter()
    exp = ds.Experiment.create("load", arms=["a", "b", "c"], seed=1, storage=url)
    batch = 5000
    for start in range(0, size, batch):
        asked = exp.ask_many(min(batch, size - start))
        exp.tell_many([(d.id, float((start + i) % (3 - d.arm) == 0)) for i, d in enumerate(asked[:-1])])
    say(f"  {size:,} decisions stored in {time.perf_counter() - begun:.0f} s")


def first_paint(url: str) -> None:
    """Measure the time until the dashboard shows the arms, with a new server and a warm one."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        say("  first paint: not measured, no Chromium here: apt-get install chromium")
        return
    from playwright.sync_api import sync_playwright

    with served(url) as (port, _), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for what in ("first visit after the start", "second visit", "third visit"):
            page = browser.new_context().new_page()
            begun = time.perf_counter()
            page.goto(f"http://127.0.0.1:{port}/#/e/load", wait_until="commit")
            page.wait_for_selector("tr[data-arm]", timeout=60_000)
            arms = time.perf_counter() - begun
            page.locator(".uplot").nth(3).wait_for(timeout=60_000)
            every = time.perf_counter() - begun
            paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
            page.wait_for_selector("table.log td.num", timeout=60_000)
            log = time.perf_counter() - begun
            say(
                f"  {what}: first paint {paint:.0f} ms, arms {1000 * arms:.0f} ms, charts {1000 * every:.0f} ms, "
                f"log {1000 * log:.0f} ms"
            )
            page.context.close()
        browser.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--stretch", type=float, default=6.0, help="seconds of a stretch with or without a burden")
    parser.add_argument("--rounds", type=int, default=8, help="pairs of such stretches")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--decisions", type=int, default=1_000_000, help="stored for the first paint; 0 leaves it out")
    parser.add_argument("--store", help="the file of a store that holds them already")
    options = parser.parse_args()
    now = datetime.datetime.now(datetime.UTC)
    say(
        f"{now:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} {platform.machine()} cores, Python {platform.python_version()}, "
        f"load average before: {os.getloadavg()[0]:.1f}"
    )
    from benchmarks import interference  # it imports this module

    with tempfile.TemporaryDirectory(prefix="ds-load-") as folder:
        urls = {name: f"sqlite:///{Path(folder) / name}.db" for name in ("pages", "keys", "attack", "replays", "start")}
        interference.start_to_first_ask(urls["start"])
        found = interference.with_dashboards(urls["pages"], options.stretch, options.rounds)[10]
        keyed = interference.with_many_keys(urls["keys"], options.stretch, options.rounds)
        health, ask = interference.under_attack(urls["attack"])
        interference.beside_replays(urls["replays"])
        missed = [
            name
            for name, held in (
                ("writers keep 90 % of their rate with 10 dashboards", found >= 0.9),
                ("32 keys reach 90 % of the rate of one", keyed >= 0.9),
                ("/healthz within 1 s under attack", health < 1.0),
                ("asks within 2 s under attack", ask < 2.0),
            )
            if not held
        ]
        say(f"  targets missed: {', '.join(missed)}" if missed else "  all targets met")
        throughput(f"sqlite:///{Path(folder) / 'load.db'}", options.connections, options.seconds)
        if options.kills:
            kills(f"sqlite:///{Path(folder) / 'kills.db'}", options.connections, options.kills)
        if options.decisions:
            many = f"sqlite:///{options.store or Path(folder) / 'many.db'}"
            if not options.store:
                store_many(many, options.decisions)
            first_paint(many)
    return 0


if __name__ == "__main__":
    sys.exit(main())
