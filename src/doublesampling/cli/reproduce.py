"""``doublesampling reproduce``: the paper's figures and a report."""

from typing import Any

from rich.console import Console

from doublesampling.cli.simulate import dask_client
from doublesampling.errors import Interrupted
from doublesampling.paper.reproduce import reproduce


def run(options: Any) -> int:
    """Run, draw, write; the report's path comes last."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        page = reproduce(
            options.out, figures=options.figure, scale=options.scale, realizations=options.realizations,
            seed=options.seed, device=options.device, executor=dask_client(options.dask), resume=options.resume,
            force=options.force, say=console.print, progress=True,
        )  # fmt: skip
    except Interrupted:
        console.print("Stopped. Nothing that was finished is lost: the same command with --resume goes on.")
        return 130
    console.print(
        f"The figures are in {page.parent / 'figures'}, the datasets in {page.parent / 'data'}, the report in"
    )
    console.print(str(page))
    return 0
