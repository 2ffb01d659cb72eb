"""``doublesampling key``: create, list, rotate and revoke API keys, and read the access log."""

import datetime
import json
import re
from typing import Any

from rich.console import Console
from rich.table import Table

from doublesampling.cli.experiment import run_one_of, wide_console
from doublesampling.errors import SettingError
from doublesampling.live.stores import Store, open_store, upgrade
from doublesampling.service import access_log, keys
from doublesampling.service.scopes import format_scopes

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def run(options: Any) -> int:
    """Run a command on API keys; return the exit status."""
    return run_one_of(_COMMANDS, options)


def parse_duration(text: str) -> datetime.timedelta:
    """Return a time span such as 30m, 24h, 90d or 2w.

    >>> parse_duration("24h")
    datetime.timedelta(days=1)
    """
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if found is None:
        raise SettingError(f"A time span is a number and m, h, d or w, such as 24h or 90d, got {text!r}.")
    return datetime.timedelta(**{_UNITS[found[2]]: int(found[1])})


def parse_expiry(text: str | None) -> datetime.datetime | None:
    """Return when a key expires: a time span from now, or an ISO date or time (UTC by default)."""
    if text is None:
        return None
    if re.fullmatch(r"\d+[a-z]", text.strip()):
        return datetime.datetime.now(datetime.UTC) + parse_duration(text)
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        raise SettingError(
            f"--expires takes a time span such as 90d or a date such as 2027-06-30, got {text!r}."
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)


def _open(options: Any) -> Store:
    store = open_store(options.storage)
    upgrade.check(store)
    return store


def _create(options: Any) -> int:
    store = open_store(options.storage)
    upgrade.ensure(store)
    key, token = keys.create(
        store, options.role, options.experiment, options.label, scopes=options.scopes,
        expires=parse_expiry(options.expires),
    )  # fmt: skip
    return _print_key(options, store, (key, token), "")


def _rotate(options: Any) -> int:
    store = _open(options)
    made = keys.rotate(
        store, options.id, overlap=parse_duration(options.overlap), expires=parse_expiry(options.expires)
    )
    return _print_key(options, store, made, f" It replaces {options.id}, which ends in {options.overlap}.")


def _print_key(options: Any, store: Store, made: tuple[keys.Key, str], more: str) -> int:
    """Print a new key, which cannot be read again, and the store that knows it."""
    key, token = made
    if options.json:
        print(json.dumps({**key.to_dict(), "key": token}))
        return 0
    where = "all experiments" if key.experiment is None else f"the experiment {key.experiment!r}"
    until = "" if key.expires_at is None else f" It expires at {key.expires_at:%Y-%m-%d %H:%M} UTC."
    print(token)
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"A key with the scopes {format_scopes(key.scopes)} for {where} in {store.where}; its id is {key.id}."
        f"{until}{more} "
        "It is shown only now and cannot be read again.",
        markup=False,
    )
    return 0


def _list(options: Any) -> int:
    found = list(keys.read(_open(options)).values())
    if options.json:
        print(json.dumps([key.to_dict() for key in found]))
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "role", "scopes", "experiment", "label", "made", "expires", ""):
        table.add_column(name)
    for key in found:
        table.add_row(
            key.id, key.role, format_scopes(key.scopes), key.experiment or "all", key.label or "", _moment(key.made_at),
            "never" if key.expires_at is None else _moment(key.expires_at), _state(key),
        )  # fmt: skip
    said = table if found else "There are no keys: the service answers only this machine."
    wide_console().print(said, markup=False)
    return 0


def _moment(at: datetime.datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _state(key: keys.Key) -> str:
    """Return whether a key is revoked, rotated or expired."""
    now = datetime.datetime.now(datetime.UTC)
    if key.revoked_at is not None:
        return "revoked" if key.revoked_at <= now else f"rotated, ends {_moment(key.revoked_at)}"
    return "expired" if key.ended(now) else ""


def _revoke(options: Any) -> int:
    keys.revoke(_open(options), options.id)
    print(json.dumps({"revoked": options.id}) if options.json else f"Key {options.id} is revoked.")
    return 0


def _log(options: Any) -> int:
    rows, _ = access_log.read(_open(options), experiment=options.experiment, limit=options.limit)
    if options.json:
        print(json.dumps([row | {"at": row["at"].isoformat(), "until": row["until"].isoformat()} for row in rows]))
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("when", "until", "times", "who", "what", "experiment", "detail"):
        table.add_column(name)
    for row in rows:
        cells = (row["actor"], row["action"], row["experiment"] or "", row["detail"] or "")
        table.add_row(_moment(row["at"]), _moment(row["until"]), str(row["count"]), *cells)
    wide_console().print(table if rows else "The access log is empty: no results were read over HTTP.", markup=False)
    return 0


_COMMANDS = {"log": _log, "create": _create, "list": _list, "rotate": _rotate, "revoke": _revoke}
