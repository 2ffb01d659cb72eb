"""The options of ``doublesampling serve`` and ``doublesampling key``, without heavy imports."""

import argparse
from collections.abc import Callable
from typing import Any

from doublesampling.cli.experiment_options import STORAGE


def add_serve(commands: Any, run: Callable[[argparse.Namespace], int], help_format: Any) -> None:
    """Add the command ``serve``."""
    serve = commands.add_parser(
        "serve",
        help="serve experiments over HTTP, with a dashboard",
        description="Serve live experiments over HTTP, with a dashboard. Without keys only this machine is served.",
        formatter_class=help_format,
    )
    serve.set_defaults(run=run)
    serve.add_argument("--storage", metavar="URL", help=STORAGE)
    serve.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen at")
    serve.add_argument("--require-keys", action="store_true",
                       help="never serve without keys (implied by a --host that others can reach)")  # fmt: skip
    serve.add_argument("--max-connections", type=int, default=1000, metavar="N",
                       help="open connections in total; beyond, the one that waits longest is closed")  # fmt: skip
    serve.add_argument("--max-per-address", type=int, default=100, metavar="N",
                       help="open connections of one address, except this machine's and a proxy's")  # fmt: skip
    serve.add_argument("--proxy", action="append", default=[], metavar="ADDRESS",
                       help="an address or network without a limit per address, such as a proxy's")  # fmt: skip
    serve.add_argument("--port", type=int, default=8000, metavar="P", help="the port to listen at")


def add_key(commands: Any, run: Callable[[argparse.Namespace], int], help_format: Any) -> None:
    """Add the command ``key`` and its subcommands."""
    key = commands.add_parser(
        "key", help="create, list, rotate and revoke API keys of the service", formatter_class=help_format
    )
    below = key.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, about: str) -> Any:
        made = below.add_parser(name, help=about, description=f"{about.capitalize()}.", formatter_class=help_format)
        made.set_defaults(run=run, what=name)
        made.add_argument("--storage", metavar="URL", help=STORAGE)
        made.add_argument("--json", action="store_true", help="print JSON")
        return made

    made = command("create", "create a key, which is printed only once")
    made.add_argument("--role", choices=("reader", "writer", "admin"),
                      help="readers see results; writers ask and tell without seeing them; admins do all")  # fmt: skip
    made.add_argument("--scopes", metavar="LIST",
                      help="instead of a role: some of ask,tell,amend,read; without read it is blind")  # fmt: skip
    made.add_argument("--experiment", metavar="NAME", help="valid for this experiment only (default: all)")
    made.add_argument("--label", metavar="TEXT", help="a note on who uses it")
    made.add_argument("--expires", metavar="WHEN", help="a time span (90d, 24h) or a date (2027-06-30); default: never")
    command("list", "list all keys")
    rotated = command("rotate", "create a key that replaces another")
    rotated.add_argument("id", metavar="ID", help="as `key list` shows it")
    rotated.add_argument(
        "--overlap", metavar="SPAN", default="0m", help="how long the old key still works, such as 24h"
    )
    rotated.add_argument("--expires", metavar="WHEN", help="when the new key expires (default: as the old one)")
    command("revoke", "revoke a key").add_argument("id", metavar="ID", help="as `key list` shows it")
    seen = command("log", "show the access log: who read or exported results, newest first")
    seen.add_argument("--experiment", metavar="NAME", help="of this experiment only (default: all)")
    seen.add_argument("--limit", type=int, default=100, metavar="N", help="how many entries")
