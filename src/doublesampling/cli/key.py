"""``doublesampling key``: keys of the service, made, listed and revoked."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table

from doublesampling.cli.experiment import run_one_of
from doublesampling.live import upgrade
from doublesampling.live.opening import open_store
from doublesampling.service import keys


def run(options: Any) -> int:
    """Do what was asked."""
    return run_one_of(_COMMANDS, options)


def _create(options: Any) -> int:
    store = open_store(options.storage)
    upgrade.ensure(store)
    key, token = keys.create(store, options.role, options.experiment, options.label)
    if options.json:
        print(json.dumps({**key.to_dict(), "key": token}))
        return 0
    where = "all experiments" if key.experiment is None else f"the experiment {key.experiment!r}"
    print(token)
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"A {key.role} key for {where}; its id is {key.id}. It is shown this once and cannot be read back.",
        markup=False,
    )
    return 0


def _list(options: Any) -> int:
    store = open_store(options.storage)
    upgrade.check(store)
    found = list(keys.read(store).values())
    if options.json:
        print(json.dumps([key.to_dict() for key in found]))
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "role", "experiment", "label", "made", ""):
        table.add_column(name)
    for key in found:
        made = f"{key.made_at:%Y-%m-%d %H:%M} UTC"
        cells = (key.id, key.role, key.experiment or "all", key.label or "", made, "revoked" if key.revoked else "")
        table.add_row(*cells)
    console = Console(highlight=False, markup=False)
    console.print(table if found else "There are no keys: the service answers this machine only.")
    return 0


def _revoke(options: Any) -> int:
    store = open_store(options.storage)
    upgrade.check(store)
    keys.revoke(store, options.id)
    print(json.dumps({"revoked": options.id}) if options.json else f"Key {options.id} is revoked.")
    return 0


_COMMANDS = {"create": _create, "list": _list, "revoke": _revoke}
