"""The identity of a store and its incarnation: after a restore, nothing cached from it is valid."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from doublesampling import __version__
from doublesampling.errors import StorageBusyError, TooNewError, TooOldError
from doublesampling.live.stores.schema import HEAD
from doublesampling.live.visibility import Snapshot


@dataclass(frozen=True)
class Incarnation:
    """The identity of a store between two restores."""

    identity: str
    """The identity of the store, which never changes."""
    incarnation: str
    """A new id after every ``db restore``."""
    marks: tuple[object, ...] = ()
    """Properties of the tables and the server that change where a store is restored by other means."""

    @cached_property
    def tag(self) -> str:
        """A short digest of all of it."""
        return hashlib.sha256(repr((self.identity, self.incarnation, self.marks)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Moment:
    """What one transaction sees of an experiment: its snapshot, and the incarnation of the store."""

    snapshot: Snapshot
    incarnation: Incarnation


class RestoredError(StorageBusyError):
    """The store was restored while this transaction began, so it would see no rows. A retry sees them."""


def check_schema(version: int, where: str, read_only: bool = False) -> None:
    """Raise an error for a schema version that this package cannot use."""
    if version > HEAD:
        raise TooNewError(
            f"{where} has schema {version}; doublesampling {__version__} supports up to {HEAD}. "
            "Update the package: pip install --upgrade doublesampling."
        )
    if version < HEAD:
        how = "Copy it to a writable folder" if read_only else "Make a copy"
        what = "doublesampling db upgrade" + (" on the copy" if read_only else "")
        raise TooOldError(f"{where} has schema {version}, this package needs {HEAD}. {how}, then run: {what}")
