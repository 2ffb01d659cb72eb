"""``doublesampling serve``: run the HTTP service with its dashboard."""

import gc
import ipaddress
import logging
import socket
from typing import Any

from rich.console import Console

from doublesampling import checks
from doublesampling.errors import DoubleSamplingError, SettingError, missing_extra


def binds_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens at this address.

    >>> binds_loopback("127.0.0.1"), binds_loopback("::1"), binds_loopback("0.0.0.0"), binds_loopback("")
    (True, True, False, False)
    """
    try:
        found = {str(place[4][0]) for place in socket.getaddrinfo(host or "0.0.0.0", None)}
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found)


def check_port(host: str, port: int) -> None:
    """Raise SettingError where the address cannot be bound, before anything is opened or printed."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((host, port))
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            raise SettingError(f"Cannot listen at {host} port {port}: {reason}. Choose another --port.") from None


def _networks(addresses: list[str]) -> tuple[str, ...]:
    """Return the addresses or networks of proxies after a check."""
    for each in addresses:
        try:
            ipaddress.ip_network(each, strict=False)
        except ValueError:
            raise SettingError(f"--proxy takes an address or network such as 10.0.0.0/8, got {each!r}.") from None
    return tuple(addresses)


def _check_keys(key_cache: Any, host: str | None) -> None:
    """Raise SettingError where keys are required and there are none; ``host`` is a public address, or None."""
    try:
        key_cache.check()
    except DoubleSamplingError:
        make = "Create one first: doublesampling key create --role admin"
        if host is None:
            raise SettingError(f"--require-keys: the store has no keys. {make}") from None
        raise SettingError(
            f"--host {host} would give everybody access to the experiments: the store has no keys. {make}; "
            "or leave --host out to serve this machine only."
        ) from None


def run(options: Any) -> int:
    """Open the store, check its keys, and serve until stopped."""
    try:
        import uvicorn

        from doublesampling.live.stores import open_store
        from doublesampling.service.app import create_app
        from doublesampling.service.protocol import Limits, fit_to_files, limited_protocol
    except ImportError as missing:
        raise missing_extra(f"serve needs FastAPI and uvicorn ({missing.name} is missing)", "service") from None
    port = checks.integer("--port", options.port, least=0, most=65535)
    limits = fit_to_files(
        Limits(
            connections=checks.integer("--max-connections", options.max_connections, least=16, most=100_000),
            per_address=checks.integer("--max-per-address", options.max_per_address, least=1, most=100_000),
            exempt=_networks(options.proxy),
        )
    )
    elsewhere = not binds_loopback(options.host)
    new = "" if open_store(options.storage).exists() else ", which is new"
    app = create_app(options.storage, require_keys=options.require_keys or elsewhere)
    keyless, console = app.state.service.key_cache.keyless, Console(highlight=False, soft_wrap=True)
    try:
        _check_keys(app.state.service.key_cache, options.host if elsewhere else None)
        check_port(options.host, port)
    except SettingError:
        app.state.service.close()
        raise
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    shown = f"[{options.host}]" if ":" in options.host else options.host
    console.print(f"Serving {app.state.service.store.where}{new}", markup=False)
    console.print(f"Dashboard: http://{shown}:{port}/", markup=False)
    if keyless:
        where = app.state.service.store.where
        storage = where if where.startswith("sqlite") else "URL"  # others are shown without their password
        console.print(
            "No keys: only this machine is served, and every user of it has all rights. "
            f"To change that, create a key: doublesampling key create --role admin --storage {storage}",
            markup=False,
        )
    app.state.service.warm_up()
    gc.collect()
    gc.freeze()  # exclude loaded objects from garbage collection, which would delay requests
    uvicorn.run(
        app,
        host=options.host,
        port=port,
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,  # headers that claim another client address are ignored
        http=limited_protocol(limits),
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=10,
        backlog=4096,
        lifespan="on",
        ws="none",
    )
    return 0
