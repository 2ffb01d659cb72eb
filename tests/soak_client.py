"""Clients of a server that is killed again and again: nothing may be lost, doubled, or raised."""

import os
import signal
import threading
import time
from typing import Any

import doublesampling as ds
from tests import soak
from tests.service import free_port, start, wait_until_up


class Worker(threading.Thread):
    """Asks and tells until it is stopped; keeps what was acknowledged."""

    def __init__(self, address: str, number: int, stop: threading.Event) -> None:
        super().__init__()
        self._address, self._number, self._stopped = address, number, stop
        self.told: dict[str, float] = {}
        self.asked, self.retried, self.problem = 0, 0, None

    def run(self) -> None:
        try:
            with ds.connect(self._address, timeout=10.0, retry_for=120.0) as connection:
                exp = connection.load("soak")
                while not self._stopped.is_set():
                    self._round(exp)
        except BaseException as problem:
            self.problem = repr(problem)  # type: ignore[assignment]

    def _round(self, exp: Any) -> None:
        """Ask for one, then for two at once, and tell the outcomes, one of them in a batch."""
        made = [exp.ask(), *exp.ask_many(2)]
        self.asked += len(made)
        values = {d.id: soak.paid(self._number * 100_000 + self.asked + i) for i, d in enumerate(made)}
        first = made[0].id
        told = [exp.tell(first, values[first]), *exp.tell_many({d.id: values[d.id] for d in made[1:]})]
        self.retried += sum(each.repeated for each in (*made, *told))
        self.told.update(values)


def kills(storage: str, times: int, workers: int, seconds: float) -> dict[str, Any]:
    """Kill the server with signal 9 while clients use it, and start it again at the same port."""
    exp, port, stop = soak.create(storage), free_port(), threading.Event()
    address = f"http://127.0.0.1:{port}"
    server = start(storage, port)
    crowd = [Worker(address, i, stop) for i in range(workers)]
    try:
        wait_until_up(address, server, 180.0)
        for worker in crowd:
            worker.start()
        for _ in range(times):
            time.sleep(seconds)
            os.kill(server.pid, signal.SIGKILL)
            server.join(30)
            server = start(storage, port)
            wait_until_up(address, server, 180.0)
        time.sleep(seconds)
        stop.set()
        for worker in crowd:
            worker.join(120)
    finally:
        stop.set()
        server.terminate()
        server.join(30)
    acknowledged = {key: value for worker in crowd for key, value in worker.told.items()}
    stored = exp.decisions().set_index("id")["reward"].dropna().to_dict()
    return {
        "problems": [worker.problem for worker in crowd if worker.problem is not None],
        "asked": sum(worker.asked for worker in crowd),
        "acknowledged": len(acknowledged),
        "lost": sum(stored.get(key) != value for key, value in acknowledged.items()),
        "retried": sum(worker.retried for worker in crowd),
        **soak.counts(storage),
        "replay": exp.replay().agrees,
    }
