"""``doublesampling protocol``: write the design of an experiment as a document, before it starts."""

from typing import Any

from doublesampling.cli.report import load
from doublesampling.errors import SettingError
from doublesampling.live.exporting import file_name
from doublesampling.reports import protocol


def run(options: Any) -> int:
    """Write the protocol and print where it is."""
    exp = load(options)
    made = protocol(exp, [_truth(text) for text in options.truth], realizations=options.realizations, seed=options.seed)
    path = made.save(options.out or file_name(f"{exp.name}-protocol", ".html"), force=options.force)
    print(f"{made.title}: {path}")
    return 0


def _truth(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SettingError(f"--truth takes one number per arm, such as 0.3,0.5, got {text!r}.") from None
