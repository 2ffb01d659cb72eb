"""The provenance that every stored row carries: actor, time and package version."""

import datetime
import getpass
import socket
from typing import Any

from doublesampling import __version__


def default_actor() -> str:
    """Return the actor of rows for which the caller names none: user@host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def provenance(actor: str) -> dict[str, Any]:
    """Return the columns ``actor``, ``at`` and ``version`` of a row that is written now."""
    return {"actor": actor, "at": datetime.datetime.now(datetime.UTC), "version": __version__}
