"""Translate database errors into errors of this package, so that no driver traceback reaches a user."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from doublesampling import errors

# SQLite names for a duplicate key; our trigger refuses one before the index does
_DUPLICATE_KEY = {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_TRIGGER"}
_RETRYABLE = {"23505", "40001", "40P01"}  # unique violation, serialization failure, deadlock
_RETRY = "No partial change was stored. Retry the call; with a request_key it is never counted twice."


def is_conflict(problem: BaseException) -> bool:
    """Return whether another writer was first, so that a retry will see what it wrote."""
    if not isinstance(problem, exc.DBAPIError):
        return False
    name = getattr(problem.orig, "sqlite_errorname", None)
    return name in _DUPLICATE_KEY or getattr(problem.orig, "sqlstate", None) in _RETRYABLE


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Raise errors of SQLAlchemy and the drivers as StorageErrors; ``where`` is the URL without the password."""
    try:
        yield
    except exc.DBAPIError as problem:
        if is_conflict(problem):
            raise
        raise _translate(problem, where) from problem
    except exc.SQLAlchemyError as problem:
        raise errors.StorageError(f"The database {where} failed: {_first_line(problem)}.") from problem


def _first_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(problem).__name__


def _translate(problem: exc.DBAPIError, where: str) -> errors.DoubleSamplingError:
    cause = problem.orig or problem
    if name := getattr(cause, "sqlite_errorname", None):
        return _from_sqlite(name, _first_line(cause), where)
    return _from_postgresql(getattr(cause, "sqlstate", None) or "", _first_line(cause), where)


def _missing_tables(said: str, where: str) -> errors.StorageReplacedError:
    return errors.StorageReplacedError(
        f"{where} no longer holds the tables of this version ({said}). If it was restored from an older copy, run: "
        "doublesampling db upgrade"
    )


def _from_sqlite(name: str, said: str, where: str) -> errors.DoubleSamplingError:
    if name == "SQLITE_FULL":
        return errors.StorageFullError(f"The disk is full: {where} cannot be written. Free some space. {_RETRY}")
    if name.startswith("SQLITE_READONLY"):
        return errors.StorageReadOnlyError(
            f"{where} is read-only. Give this user write access to the file and its folder, or name another store."
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return errors.StorageBusyError(f"{where} was locked by another process for too long. {_RETRY}")
    if name == "SQLITE_NOTADB":
        return errors.NotOursError(f"{where} is not a SQLite database. Name another file.")
    if name.startswith("SQLITE_CANTOPEN"):
        return errors.StorageError(
            f"{where} cannot be opened. Check that the folder exists and is writable; copy an archive that has a -wal "
            "file together with that file to such a folder."
        )
    if said.startswith("no such table: ds_"):
        return _missing_tables(said, where)
    if name.startswith("SQLITE_CORRUPT"):
        return errors.StorageError(f"{where} is damaged ({said}). Restore it from a copy.")
    return errors.StorageError(f"{where} failed: {said}. {_RETRY}")


def _from_postgresql(state: str, said: str, where: str) -> errors.DoubleSamplingError:
    if state == "53100":
        return errors.StorageFullError(f"The disk of the server of {where} is full. Free some space. {_RETRY}")
    if state in ("25006", "42501"):
        return errors.StorageReadOnlyError(
            f"{where} is read-only for this user ({said}). Grant write access, or name another store."
        )
    if state == "3D000":
        return errors.StorageError(f"The database of {where} does not exist. Create it with createdb, or name another.")
    if state == "53300":
        return errors.StorageBusyError(f"{where} has no free connection. Raise max_connections, or use a pooler.")
    if state == "42P01" and '"ds_' in said:
        return _missing_tables(said, where)
    if state.startswith("28"):
        return errors.StorageError(f"{where} refused the user or password. Check the URL.")
    return errors.StorageError(f"{where} failed: {said}. Is the server running and reachable? {_RETRY}")
