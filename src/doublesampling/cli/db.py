"""``doublesampling db``: upgrade, back up, restore and verify a store."""

from collections.abc import Callable
from typing import Any

from doublesampling.cli.experiment import run_one_of, show
from doublesampling.live.stores import open_store


def run(options: Any) -> int:
    """Run a command on a store; return the exit status."""
    return run_one_of(_COMMANDS, options)


def _upgrade(options: Any) -> int:
    from doublesampling.live.stores import upgrade

    store = open_store(options.storage)
    before, after = upgrade.upgrade(store)
    said = f"{store.where}: schema {after}" + (", already up to date." if before == after else f", was {before}.")
    return show(options, {"before": before, "after": after}, lambda: said)


def _backup(options: Any) -> int:
    from doublesampling.live.stores.backup import backup

    found = backup(open_store(options.storage), options.file, force=options.force)
    said = (
        f"Written to {found.path}: {found.experiments} experiments, {found.decisions} decisions, {found.outcomes} "
        f"outcomes, {found.bytes} bytes."
    )
    return show(options, found.to_dict(), lambda: said)


def _restore(options: Any) -> int:
    from doublesampling.live.stores.restore import restore

    found = restore(open_store(options.storage), options.file, force=options.force, keep=not options.discard)
    said = (
        f"Restored {found.experiments} experiments, {found.decisions} decisions, {found.outcomes} outcomes. Running "
        "servers continue with the restored data."
    )
    if found.kept is not None:
        said += f"\nThe replaced contents were backed up to {found.kept}."
    return show(options, found.to_dict(), lambda: said)


def _verify(options: Any) -> int:
    from doublesampling.live.verify import verify

    found = verify(open_store(options.storage))
    lines = [
        f"{row['name']}: {row['decisions']} decisions and {row['checkpoints']} checkpoints recomputed, "
        + ("all agree" if row["agrees"] else "NOT ALL AGREE")
        for row in found.experiments
    ]
    lines += [f"PROBLEM  {problem}" for problem in found.problems]
    lines.append("No problems were found." if found.ok else f"{len(found.problems)} problems were found.")
    show(options, found.to_dict(), lambda: "\n".join(lines))
    return 0 if found.ok else 1


_COMMANDS: dict[str, Callable[[Any], int]] = {
    "upgrade": _upgrade,
    "backup": _backup,
    "restore": _restore,
    "verify": _verify,
}
