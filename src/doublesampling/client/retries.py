"""When a request is tried again, and after how long: exponential backoff with jitter, within a given time."""

import random
import time
from collections.abc import Callable

from doublesampling.client.errors import FailedAttemptError

FIRST = 0.1
"""Seconds before the second attempt; each further wait is twice as long."""
LONGEST = 5.0
"""The longest wait between two attempts, in seconds."""


class Attempts:
    """The attempts of one call. Every call of the client may be repeated without effect; see calls.py."""

    def __init__(
        self,
        retry_for: float,
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._clock, self._uniform = clock, uniform
        self._began = clock()
        self._until = self._began + retry_for
        self.failed = 0
        self.unclear = False
        """Whether an attempt that failed may have been stored."""

    def pause(self, failure: FailedAttemptError) -> float:
        """Return the seconds to wait before the next attempt; raise the error where there is none."""
        self.failed += 1
        self.unclear = self.unclear or failure.unclear
        now = self._clock()
        if not failure.again or now >= self._until:
            if self.failed > 1:
                failure.error.add_note(f"{self.failed} attempts in {now - self._began:.1f} s.")
            raise failure.error from None
        most = min(LONGEST, FIRST * 2.0 ** min(self.failed - 1, 30))
        wait = max(self._uniform(0.5 * most, most), failure.after or 0.0)
        return min(wait, self._until - now)  # the last attempt is made when the time is over
