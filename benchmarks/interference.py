"""The effect of dashboards, idle sockets, endless headers and many keys on writers: cases of benchmarks/load.py.

Writers run all the time and the extra load is switched on and off every few seconds, so that other work on the machine
affects both: the ratio compares adjacent periods of one run.
"""

import asyncio
import contextlib
import http.client
import json
import multiprocessing
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import uvloop

import doublesampling as ds
from benchmarks.load import Connection, press, say, served
from doublesampling.live.stores import open_store, upgrade
from doublesampling.service import keys

_PACE, _SLOW = 3.0, 10.0  # seconds between two polls of the page, and of its charts
_CHARTS = (
    "series?points=300",
    "posterior?density=120",
    "decisions?limit=20&before=4611686018427387903",
    "waiting?limit=10",
    "health",
)


async def _look(port: int, begin: float, stretch: float, until: float) -> None:
    """Send the requests of an open page: the overview regularly, charts and log after changes."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
        at, tags, drawn = "/v1/experiments/load", dict[str, str](), 0.0
        while time.perf_counter() < until:
            if int((time.perf_counter() - begin) // stretch) % 2 == 0:  # the page is closed
                await asyncio.sleep(0.05)
                continue
            changed = await connection.fetch(f"{at}/overview", tags)
            if changed and time.perf_counter() - drawn > _SLOW:
                drawn = time.perf_counter()
                for path in _CHARTS:
                    await connection.fetch(f"{at}/{path}", tags)
            await asyncio.sleep(_PACE)


def _look_all(port: int, count: int, begin: float, stretch: float, until: float) -> None:
    async def everyone() -> None:
        await asyncio.gather(*(_look(port, begin, stretch, until) for _ in range(count)))

    uvloop.run(everyone())


def compare(port: int, connections: int, stretch: float, rounds: int, burden: Any) -> tuple[float, float, float]:
    """Return requests per second of the writers without and with extra load, and the median ratio of adjacent periods.

    ``burden(begin, until)`` starts something that works in every second stretch.
    """
    begin = time.perf_counter() + 3.0
    until = begin + 2 * rounds * stretch
    stop = burden(begin, until)
    ended = press(port, connections, until - time.perf_counter()).ended
    stop()
    counts, _ = np.histogram(ended, bins=begin + stretch * np.arange(2 * rounds + 1))
    rates = 2 * counts / stretch
    return float(np.median(rates[0::2])), float(np.median(rates[1::2])), float(np.median(rates[1::2] / rates[0::2]))


async def _trickle(port: int, until: float) -> None:
    """Write some pairs per second, so that every poll finds new rows."""
    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
    while time.perf_counter() < until:
        made = await connection.call("POST", "/v1/experiments/load/decisions", {})
        path = f"/v1/experiments/load/decisions/{made['id']}/outcome"
        await connection.call("PUT", path, {"reward": 1.0})
        await asyncio.sleep(0.25)


def processor_share(server: int, port: int, pages: int, seconds: float = 20.0) -> float:
    """Return the share of a core that the server uses with open pages and few writes."""
    context, now = multiprocessing.get_context("spawn"), time.perf_counter()
    until = now + seconds + 3.0
    always = (port, pages, now - 1.5e6, 1e6, until)  # every moment lies in a stretch with pages
    process = context.Process(target=_look_all, args=always, daemon=True)
    process.start()
    time.sleep(3.0)
    watched = psutil.Process(server)
    begun, spent = time.perf_counter(), sum(watched.cpu_times()[:2])
    uvloop.run(_trickle(port, until))
    share = (sum(watched.cpu_times()[:2]) - spent) / (time.perf_counter() - begun)
    process.join()
    return float(share)


def with_dashboards(url: str, stretch: float, rounds: int) -> dict[int, float]:
    """Return the ratio of 8 writers' requests per second with open pages to those without."""
    ds.Experiment.create("load", arms=["a", "b", "c"], seed=1, storage=url)
    ratios = {}
    context = multiprocessing.get_context("spawn")
    with served(url) as (port, server):
        press(port, 8, 2.0)
        for count in (3, 10):

            def pages(begin: float, until: float, count: int = count) -> Callable[[], None]:
                process = context.Process(target=_look_all, args=(port, count, begin, stretch, until), daemon=True)
                process.start()
                return process.join

            alone, beside, ratios[count] = compare(port, 8, stretch, rounds, pages)
            say(
                f"  8 writers: {alone:.0f} requests per second alone, {beside:.0f} beside {count} dashboards: "
                f"{100 * ratios[count]:.0f} %"
            )
        shares = [processor_share(server.pid, port, count) for count in (0, 10, 0, 10)]
        more = 50 * (shares[1] + shares[3] - shares[0] - shares[2])
        say(f"  share of a core that 10 dashboards use on the server: {more:.1f} %")
    return ratios


def with_many_keys(url: str, stretch: float, rounds: int) -> float:
    """Return the ratio of 32 clients' pairs per second with a key each to those with one key, alternating."""
    store = open_store(url)
    upgrade.ensure(store)
    ds.Experiment.create("load", arms=["a", "b", "c"], seed=1, storage=url)
    tokens = [keys.create(store, "writer")[1] for _ in range(32)]
    rates = []
    with served(url) as (port, _):
        press(port, 32, 2.0, tokens)
        for turn in range(2 * rounds):
            found = press(port, 32, stretch, tokens if turn % 2 else tokens[:1])
            rates.append(len(found.acknowledged) / found.took)
    one, many = np.array(rates[0::2]), np.array(rates[1::2])
    ratio = float(np.median(many / one))
    say(
        f"  32 clients: {np.median(one):.0f} pairs per second with one key, {np.median(many):.0f} with 32 keys: "
        f"{100 * ratio:.0f} %"
    )
    return ratio


def timed_call(port: int, method: str, path: str, body: Any = None) -> float:
    """Return the seconds until a new connection gets its response."""
    begun = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status not in (200, 201):
        raise RuntimeError(f"{path} answered {answer.status}")
    return time.perf_counter() - begun


def _send_endless_header(port: int, stop: threading.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
            while not stop.is_set():
                s.sendall(b"X-A: " + b"a" * 60_000 + b"\r\n")
        time.sleep(0.02)


def under_attack(url: str, sockets: int = 2000, headers: int = 50, calls: int = 20) -> tuple[float, float]:
    """Return the slowest /healthz and ask while idle sockets and endless headers occupy connections."""
    ds.Experiment.create("load", arms=["a", "b", "c"], seed=1, storage=url)
    with served(url) as (port, _), contextlib.ExitStack() as opened:
        timed_call(port, "POST", "/v1/experiments/load/decisions", {})
        for _ in range(sockets):
            opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        stop = threading.Event()
        threads = [
            threading.Thread(target=_send_endless_header, args=(port, stop), daemon=True) for _ in range(headers)
        ]
        for thread in threads:
            thread.start()
        try:
            healths = [timed_call(port, "GET", "/healthz") for _ in range(calls)]
            asks = [timed_call(port, "POST", "/v1/experiments/load/decisions", {}) for _ in range(calls)]
        finally:
            stop.set()
            for thread in threads:
                thread.join(20)
    say(
        f"  {sockets} idle sockets and {headers} endless headers: /healthz at most {max(healths):.2f} s, "
        f"asks at most {max(asks):.2f} s"
    )
    return max(healths), max(asks)


def beside_replays(url: str, readers: int = 8, calls: int = 20, decisions: int = 20_000) -> tuple[float, float]:
    """Return the slowest /healthz and ask while readers replay and export a log in loops."""
    exp = ds.Experiment.create("load", arms=["a", "b", "c"], seed=1, storage=url)
    for _ in range(0, decisions, 2000):
        exp.tell_many([(d.id, float(d.arm == 1)) for d in exp.ask_many(2000)])
    with served(url) as (port, _):
        timed_call(port, "POST", "/v1/experiments/load/decisions", {})
        stop = threading.Event()

        def read(path: str) -> None:
            while not stop.is_set():
                with contextlib.suppress(OSError, RuntimeError, http.client.HTTPException):
                    timed_call(port, "GET", f"/v1/experiments/load/{path}")

        paths = ["replay", "export.csv", "export.jsonl", "replay"] * (readers // 4)
        threads = [threading.Thread(target=read, args=(path,), daemon=True) for path in paths]
        for thread in threads:
            thread.start()
        time.sleep(2.0)
        try:
            healths = [timed_call(port, "GET", "/healthz") for _ in range(calls)]
            asks = [timed_call(port, "POST", "/v1/experiments/load/decisions", {}) for _ in range(calls)]
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
    say(
        f"  {readers} readers who replay and export {decisions:,} decisions in loops: /healthz at most "
        f"{max(healths):.2f} s, asks at most {max(asks):.2f} s"
    )
    return max(healths), max(asks)


def start_to_first_ask(url: str, times: int = 3) -> tuple[float, float]:
    """Measure the time from the server's start to the first ask, with an empty and a filled compile cache."""
    ds.Experiment.create("load", arms=["a", "b", "c"], seed=1, storage=url)

    def once(cache: str) -> float:
        begun = time.perf_counter()
        with served(url, environment={"NUMBA_CACHE_DIR": cache}, seconds=300.0) as (port, _):
            timed_call(port, "POST", "/v1/experiments/load/decisions", {})
            return time.perf_counter() - begun

    with tempfile.TemporaryDirectory(prefix="ds-cache-") as cache:
        cold = once(cache)
        kept = float(np.median([once(cache) for _ in range(times)]))
    say(f"  server start to first ask: {cold:.1f} s with an empty cache, {kept:.1f} s with a filled one")
    return cold, kept
