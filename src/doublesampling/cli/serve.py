"""``doublesampling serve``: the service and its dashboard."""

import gc
import ipaddress
import logging
import socket
from typing import Any

from rich.console import Console

from doublesampling import checks
from doublesampling.errors import MissingExtraError, SettingError


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_port(host: str, port: int) -> None:
    """Refuse a place that cannot be served from before anything is opened or said."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((host, port))
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            raise SettingError(f"{host} port {port} cannot be served from: {reason}. Choose another --port.") from None


def run(options: Any) -> int:
    """Open the store, check who may come in, serve until stopped."""
    try:
        import uvicorn

        from doublesampling.service.app import create_app
    except ImportError as missing:
        raise MissingExtraError(
            f"serve needs FastAPI and uvicorn ({missing.name} is missing): pip install 'doublesampling[service]'"
        ) from None
    port = checks.integer("--port", options.port, least=0, most=65535)
    app = create_app(options.storage)
    keyless, console = app.state.desk.ring.empty, Console(highlight=False, soft_wrap=True)
    if keyless and not is_loopback(options.host):
        app.state.desk.close()
        raise SettingError(
            f"--host {options.host} would open the experiments to everybody: the store has no keys. Make one first, "
            "`doublesampling key create --role admin`, or leave --host out to serve this machine only."
        )
    try:
        check_port(options.host, port)
    except SettingError:
        app.state.desk.close()
        raise
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    shown = f"[{options.host}]" if ":" in options.host else options.host
    console.print(f"Serving {app.state.desk.store.where}", markup=False)
    console.print(f"Dashboard: http://{shown}:{port}/", markup=False)
    if keyless:
        console.print(
            "No keys: bound to this machine only, and whoever is on it may do everything. "
            "`doublesampling key create` closes the door.",
            markup=False,
        )
    app.state.desk.warm_up()
    gc.collect()
    gc.freeze()  # what was loaded stays: looking through it again and again would hold up requests
    uvicorn.run(
        app,
        host=options.host,
        port=port,
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # nothing here believes who a client says it is
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        limit_concurrency=2000,
        lifespan="on",
        ws="none",
    )
    return 0
