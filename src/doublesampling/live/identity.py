"""Which store a transaction meets, and in which incarnation: after a restore, nothing remembered of it holds."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from doublesampling import __version__
from doublesampling.errors import StorageBusyError, TooNewError, TooOldError
from doublesampling.live.schema import HEAD
from doublesampling.live.snapshot import Snapshot


@dataclass(frozen=True)
class Incarnation:
    """A store between two restores."""

    identity: str
    """Of the store, the same for ever."""
    incarnation: str
    """A new one after every ``db restore``."""
    marks: tuple[object, ...] = ()
    """What else changes where somebody restores by other means: of the tables, of the server."""

    @cached_property
    def tag(self) -> str:
        """A short text that stands for all of it."""
        return hashlib.sha256(repr((self.identity, self.incarnation, self.marks)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Moment:
    """What one transaction sees of an experiment: which transactions, of which incarnation."""

    snapshot: Snapshot
    incarnation: Incarnation


class RestoredError(StorageBusyError):
    """The store was restored while this transaction began: it would see nothing. Doing it again sees everything."""


def check_schema(version: int, where: str, read_only: bool = False) -> None:
    """Refuse a schema that this package cannot work with."""
    if version > HEAD:
        raise TooNewError(
            f"{where} has schema {version}; doublesampling {__version__} knows up to {HEAD}. "
            "Update the package: pip install --upgrade doublesampling."
        )
    if version < HEAD:
        how = "Copy it to a place where it may be written" if read_only else "Make a copy"
        what = "doublesampling db upgrade" + (" on the copy" if read_only else "")
        raise TooOldError(f"{where} has schema {version}, this package wants {HEAD}. {how}, then run: {what}")
