"""Prometheus metrics: requests, their durations, and group commits. They name no experiment."""

import threading
from bisect import bisect_left
from collections import Counter

from doublesampling import __version__
from doublesampling.live.group_commit import Writer

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counters of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._buckets.setdefault(route, [0] * (len(_BOUNDS) + 1))[bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, writer: Writer) -> str:
        """Return the metrics in Prometheus' text format."""
        lines = ["# TYPE doublesampling_info gauge", f'doublesampling_info{{version="{__version__}"}} 1']
        lines += [
            "# HELP doublesampling_requests_total Requests answered.",
            "# TYPE doublesampling_requests_total counter",
        ]
        with self._lock:
            for (method, route, status), count in sorted(self._requests.items()):
                labels = f'method="{method}",route="{_escaped(route)}",status="{status}"'
                lines.append(f"doublesampling_requests_total{{{labels}}} {count}")
            name = "doublesampling_request_seconds"
            lines += [f"# HELP {name} Time until the end of the response.", f"# TYPE {name} histogram"]
            for route, counts in sorted(self._buckets.items()):
                label, total = f'route="{_escaped(route)}"', 0
                for bound, count in zip((*_BOUNDS, "+Inf"), counts, strict=True):
                    total += count
                    lines.append(f'{name}_bucket{{{label},le="{bound}"}} {total}')
                lines += [f"{name}_sum{{{label}}} {self._seconds[route]:.6f}", f"{name}_count{{{label}}} {total}"]
        for name, value, about in (
            ("doublesampling_written_total", writer.jobs, "Asks and tells that were written."),
            ("doublesampling_groups_total", writer.groups, "Group commits that wrote them."),
        ):
            lines += [f"# HELP {name} {about}", f"# TYPE {name} counter", f"{name} {value}"]
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
