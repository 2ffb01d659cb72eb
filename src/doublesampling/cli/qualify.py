"""``doublesampling qualify``: check this installation against published and stored numbers."""

from typing import Any

from rich.console import Console

from doublesampling.reports.qualification import checks, qualify


def run(options: Any) -> int:
    """Print every check as it is made; return 1 where any failed."""
    console, done = Console(highlight=False, soft_wrap=True), []
    for check in checks():
        done.append(check)
        console.print("pass" if check.passed else "FAIL", style="green" if check.passed else "bold red", end="  ")
        detail = "" if check.passed else f": expected {check.expected}, found {check.found}"
        console.print(f"{check.what} ({check.source}){detail}", markup=False)
    failed = sum(not check.passed for check in done)
    console.print(f"{len(done) - failed} of {len(done)} checks passed.")
    if options.out is not None:
        console.print(f"Written to {qualify(done).save(options.out, force=options.force)}.", markup=False)
    return 1 if failed else 0
