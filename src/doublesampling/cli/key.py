"""``doublesampling key``: keys of the service, made, listed, rotated and revoked, and who read what."""

import datetime
import json
import re
from typing import Any

from rich.console import Console
from rich.table import Table

from doublesampling.cli.experiment import _open_console, run_one_of
from doublesampling.errors import SettingError
from doublesampling.live import upgrade
from doublesampling.live.opening import open_store
from doublesampling.live.store import Store
from doublesampling.service import access_log, keys
from doublesampling.service.scopes import shown

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def run(options: Any) -> int:
    """Do what was asked."""
    return run_one_of(_COMMANDS, options)


def parse_duration(text: str) -> datetime.timedelta:
    """A time span such as 30m, 24h, 90d or 2w.

    >>> parse_duration("24h")
    datetime.timedelta(days=1)
    """
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if found is None:
        raise SettingError(f"A time span is a number and m, h, d or w, such as 24h or 90d, got {text!r}.")
    return datetime.timedelta(**{_UNITS[found[2]]: int(found[1])})


def parse_expiry(text: str | None) -> datetime.datetime | None:
    """When a key ends: a time span from now, or a date or moment in ISO form (UTC where it does not say)."""
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
    return _hand_out(options, key, token, "")


def _rotate(options: Any) -> int:
    key, token = keys.rotate(
        _open(options), options.id, overlap=parse_duration(options.overlap), expires=parse_expiry(options.expires)
    )
    return _hand_out(options, key, token, f" It replaces {options.id}, which ends in {options.overlap}.")


def _hand_out(options: Any, key: keys.Key, token: str, more: str) -> int:
    """Print a new key, this once."""
    if options.json:
        print(json.dumps({**key.to_dict(), "key": token}))
        return 0
    where = "all experiments" if key.experiment is None else f"the experiment {key.experiment!r}"
    until = "" if key.expires_at is None else f" It expires at {key.expires_at:%Y-%m-%d %H:%M} UTC."
    print(token)
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"A key with the scopes {shown(key.scopes)} for {where}; its id is {key.id}.{until}{more} "
        "It is shown this once and cannot be read back.",
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
            key.id, key.role, shown(key.scopes), key.experiment or "all", key.label or "", _moment(key.made_at),
            "never" if key.expires_at is None else _moment(key.expires_at), _state(key),
        )  # fmt: skip
    said = table if found else "There are no keys: the service answers this machine only."
    _open_console().print(said, markup=False)
    return 0


def _moment(at: datetime.datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _state(key: keys.Key) -> str:
    """Whether a key is revoked or expired, or will be soon."""
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
    _open_console().print(table if rows else "Nobody has read anything over HTTP.", markup=False)
    return 0


_COMMANDS = {"log": _log, "create": _create, "list": _list, "rotate": _rotate, "revoke": _revoke}
