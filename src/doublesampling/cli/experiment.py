"""``doublesampling experiment``: run a live experiment from the command line; --json prints JSON."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from doublesampling import beliefs, policies
from doublesampling.cli.allocation import read_allocation
from doublesampling.cli.context import parse_context, read_features_file
from doublesampling.cli.settings import parse_settings, read_truth
from doublesampling.errors import DoubleSamplingError, NotFoundError, SettingError
from doublesampling.live import Experiment, Receipt
from doublesampling.live.stores import open_store
from doublesampling.live.unavailable import NotImportedError


def wide_console() -> Console:
    """Return a console with the width of the terminal, or 160 columns for a file or pipe."""
    console = Console(highlight=False, soft_wrap=True)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, width=160)


def run_one_of(commands: Mapping[str, Callable[[Any], int]], options: Any) -> int:
    """Run one of the commands and return the exit status; with --json, errors are JSON too."""
    try:
        return commands[options.what](options)
    except DoubleSamplingError as problem:
        if not options.json:
            raise
        print(json.dumps({"error": problem.code, "message": str(problem)}))
        return 1


def run(options: Any) -> int:
    """Run a command on an experiment; return the exit status."""
    return run_one_of(_COMMANDS, options)


def show(options: Any, content: Any, words: Callable[[], Any]) -> int:
    """Print the content as JSON with --json, otherwise the text; return 0."""
    if options.json:
        print(json.dumps(content, allow_nan=False, ensure_ascii=False))
    else:
        said = words()
        if said is not None:
            wide_console().print(said, markup=False)
    return 0


def _load(options: Any) -> Experiment:
    actor = getattr(options, "actor", None)
    return Experiment.load(options.name, storage=options.storage, actor=actor, allow_import=options.allow_import)


def _create(options: Any) -> int:
    if options.design is not None:
        return _create_from_trial(options)
    if options.arms is None:
        raise SettingError("create needs --arms, or --design with the file of a trial's design.")
    given = {} if options.features is None else {"features": read_features_file(options.features)}
    belief = parse_settings(options.belief, beliefs, arms=len(options.arms), **given)
    policy, limits = parse_settings(options.policy, policies), read_allocation(options)
    exp = Experiment.create(
        options.name, arms=options.arms, belief=belief, policy=policy, seed=options.seed, units=options.units,
        storage=options.storage, actor=options.actor, allocation=limits,
    )  # fmt: skip
    parts = [belief, policy] + ([] if limits is None else [limits])
    words = f"Experiment {exp.name!r} is ready: {', '.join(map(repr, parts))}, seed {exp.design.seed}. Next: ask."
    return show(options, exp.summary(), lambda: words)


def _create_from_trial(options: Any) -> int:
    from doublesampling.trials import Trial

    if options.arms is not None or options.features is not None or read_allocation(options) is not None:
        raise SettingError("--design already says arms, belief, policy and allocation. Leave the other options out.")
    exp = Experiment.create(
        options.name, design=Trial.read(options.design), seed=options.seed, units=options.units,
        storage=options.storage, actor=options.actor,
    )  # fmt: skip
    words = f"Experiment {exp.name!r} is ready, as {options.design} says, seed {exp.design.seed}. Next: ask."
    return show(options, exp.summary(), lambda: words)


def _ask(options: Any) -> int:
    exp = _load(options)
    context = parse_context(exp.design.belief, options.context)
    if options.count is not None:
        units = None if options.unit is None else [f"{options.unit}-{i}" for i in range(options.count)]
        contexts = None if context is None else [context] * options.count
        found = exp.ask_many(options.count, units=units, contexts=contexts, request_key=options.key)
        return show(options, [d.to_dict() for d in found], lambda: "\n".join(map(_line, found)))
    d = exp.ask(unit=options.unit, context=context, request_key=options.key)
    return show(options, d.to_dict(), lambda: _line(d))


def _line(d: Receipt) -> str:
    again = ", asked before" if d.repeated else ""
    plural = "s" * (d.candidates > 1)
    return (
        f"{d.arm_name}   (decision {d.id}{again}; P(best) {d.probability_optimal[d.arm]:.3f}, {d.candidates} "
        f"candidate{plural}, propensity {d.propensity:.3f})"
    )


def _tell(options: Any) -> int:
    found = _load(options).tell(options.decision, options.reward, imputed=options.imputed, reason=options.reason)
    said = f"{'Already stored' if found.repeated else 'Stored'}: {found.reward:g}{' (imputed)' * found.imputed}."
    return show(options, found.to_dict(), lambda: said)


def _amend(options: Any) -> int:
    found = _load(options).amend(options.decision, options.reward, reason=options.reason)
    return show(options, found.to_dict(), lambda: f"Amended to {found.reward:g}; revision {found.revision}.")


def _retract(method: str, done: str) -> Callable[[Any], int]:
    def act(options: Any) -> int:
        found = getattr(_load(options), method)(options.decision, reason=options.reason)
        already = f"Nothing changed: it was {found.kind} before. Reason: {found.reason}"
        return show(options, found.to_dict(), lambda: already if found.repeated else done)

    return act


def _history(options: Any) -> int:
    from doublesampling.cli.history import read_history

    exp = _load(options)
    current = exp.state
    found = read_history(options.file, current.arms, current.belief, options.context)
    key = options.key or found.key
    added = exp.add_history(found.arms, found.rewards, found.contexts, request_key=key)
    said = f"Added {added} outcomes." if added else "These outcomes were added before; nothing was changed."
    return show(options, {"added": added, "request_key": key}, lambda: said)


def _audit(options: Any) -> int:
    from doublesampling.live.queries import audit

    exp = _load(options)
    if options.out is not None or options.format is not None:
        from doublesampling.live.exporting import export_audit

        path = export_audit(exp.session, _form(options), options.out, force=options.force)
        return show(options, {"path": str(path)}, lambda: f"Written to {path}.")
    entries, following = audit.read(exp.session, options.after, options.limit)
    content = {"entries": [entry.to_dict() for entry in entries], "following": following}
    lines = [_audit_line(entry) for entry in entries]
    if following is not None:
        lines.append(f"Next page: --after {following}")
    return show(options, content, lambda: "\n".join(lines) or "There are no entries after this cursor.")


def _audit_line(entry: Any) -> str:
    parts = [f"{entry.at:%Y-%m-%d %H:%M:%S}", f"{entry.kind:15s}", entry.unit or entry.decision or "", entry.arm_name]
    if entry.reward is not None:
        parts.append(f"{entry.reward:g}")
    if entry.previous is not None:
        parts.append(f"(was {entry.previous:g})")
    because = f": {entry.reason}" if entry.reason else ""
    return "  ".join(part for part in parts if part) + f"  by {entry.actor}{because}"


def _change(method: str, done: str, already: str) -> Callable[[Any], int]:
    def act(options: Any) -> int:
        exp = _load(options)
        given = [options.arm] if "arm" in options else []
        changed = getattr(exp, method)(*given, reason=options.reason)
        return show(options, {"changed": changed}, lambda: done if changed else already)

    return act


def _list(options: Any) -> int:
    found = Experiment.list(options.storage)
    if not found and not (store := open_store(options.storage)).exists():
        raise NotFoundError(f"There is no database at {store.where}. Check the path, or create an experiment there.")

    def words() -> Table | str:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("experiment", "arms", "created", "by"):
            table.add_column(name)
        for row in found:
            table.add_row(row["name"], ", ".join(row["arms"]), row["created_at"][:16], row["created_by"])
        return table if found else "No experiments yet. Create one with: doublesampling experiment create"

    if options.json:
        return show(options, list(found), lambda: None)
    wide_console().print(words())
    return 0


def _status(options: Any) -> int:
    from doublesampling.cli.status import show_status, status

    exp, hint = _load(options), ""
    try:
        content = status(exp, parse_context(exp.design.belief, options.context))
    except NotImportedError as problem:
        content, hint = exp.summary(), f"\nCounts only. {problem}"

    def words() -> str | None:
        show_status(wide_console(), exp, content)
        return hint or None

    return show(options, content, words)


def _pending(options: Any) -> int:
    frame = _load(options).pending()
    rows = json.loads(
        frame[["id", "unit", "asked_at", "arm_name", "status"]].to_json(orient="records", date_format="iso")
    )
    lines = [f"{r['id']}  {r['unit'] or '-'}  {r['arm_name']}  {r['asked_at'][:16]}  {r['status']}" for r in rows]
    return show(options, rows, lambda: "\n".join(lines) or "No decision waits for an outcome.")


def _explain(options: Any) -> int:
    found = _load(options).explain(options.decision)
    return show(options, found.to_dict(), lambda: str(found))


def _form(options: Any) -> str:
    suffix = (options.out or "").rpartition(".")[2].lower()
    return options.format or (suffix if suffix in ("parquet", "csv", "jsonl") else "csv")


def _export(options: Any) -> int:
    path = _load(options).export(_form(options), options.out, force=options.force, audit=options.audit)
    beside = "; the audit trail is in a second file next to it" if options.audit else ""
    return show(options, {"path": str(path)}, lambda: f"Written to {path}{beside}.")


def _replay(options: Any) -> int:
    found = _load(options).replay()
    lines = [f"{found.decisions} decisions recomputed from the log: " + ("all agree." if found.agrees else
             f"{found.different} DIFFER."), *found.differences]  # fmt: skip
    show(options, found.to_dict(), lambda: "\n".join(lines))
    return 0 if found.agrees else 1


def _simulate(options: Any) -> int:
    from doublesampling.cli.status import show_characteristics
    from doublesampling.live.operating_characteristics import characteristics

    design = _load(options).current_design
    found = [
        characteristics(design, truth, horizon=options.horizon, realizations=options.realizations,
                        seed=options.seed, noise=options.noise, delay=options.delay, dropout=options.dropout,
                        trend=options.trend)
        for truth in map(read_truth, options.truth)
    ]  # fmt: skip
    return show(options, [row.to_dict() for row in found], lambda: show_characteristics(wide_console(), design, found))


_COMMANDS: dict[str, Callable[[Any], int]] = {
    "create": _create,
    "ask": _ask,
    "tell": _tell,
    "amend": _amend,
    "withdraw": _retract("withdraw", "Withdrawn: the decision waits for an outcome again."),
    "void": _retract("void", "Voided: it stays in the log and does not count."),
    "history": _history,
    "audit": _audit,
    "pause": _change("pause", "Paused: no new decisions. Outcomes can still be told.", "It was paused already."),
    "resume": _change("resume", "Resumed.", "It was not paused."),
    "drop-arm": _change("drop_arm", "Dropped; outcomes of earlier decisions still count.", "It was dropped already."),
    "add-arm": _change("add_arm", "Added; it starts at the prior.", "It exists already."),
    "list": _list,
    "status": _status,
    "pending": _pending,
    "explain": _explain,
    "export": _export,
    "replay": _replay,
    "simulate": _simulate,
}
