"""``doublesampling warm``: compile everything ahead, for images and servers."""

import time
from typing import Any

from doublesampling.progress import Progress
from doublesampling.warm import tasks, warm


def run(options: Any) -> int:
    """Compile, and say how long it took and where the code is kept."""
    began = time.monotonic()
    total = len(tasks(options.what))
    progress = Progress(None, "compiling", lambda: True)
    with progress.over(total, 0, "runs"):
        count = warm(options.what, options.processes, lambda done, total: progress.advance(1))
    print(f"Compiled for this machine: {count} runs in {time.monotonic() - began:.0f} s. The code is kept on disk.")
    return 0
