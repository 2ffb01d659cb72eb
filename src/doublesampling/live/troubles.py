"""What a database complains of, in our words: no traceback of a library reaches a user."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from doublesampling import errors

# constraint names that SQLite gives; a trigger of ours refuses a taken key before the index does
_TAKEN = {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_TRIGGER"}
_LOST = {"23505", "40001", "40P01"}  # unique violation, serialization failure, deadlock
_AGAIN = "Nothing was half-written; the same call can be made again, and with a request_key it never counts twice."


def lost_a_race(problem: BaseException) -> bool:
    """Whether another writer was first, so that looking again will find what it wrote."""
    if not isinstance(problem, exc.DBAPIError):
        return False
    name = getattr(problem.orig, "sqlite_errorname", None)
    return name in _TAKEN or getattr(problem.orig, "sqlstate", None) in _LOST


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn errors of SQLAlchemy and the drivers into ours; ``where`` names the database without its password."""
    try:
        yield
    except exc.DBAPIError as problem:
        if lost_a_race(problem):
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


def _from_sqlite(name: str, said: str, where: str) -> errors.DoubleSamplingError:
    if name == "SQLITE_FULL":
        return errors.StorageFullError(f"No room is left for {where}. Free some space, then go on. {_AGAIN}")
    if name.startswith("SQLITE_READONLY"):
        return errors.StorageReadOnlyError(
            f"{where} may only be read. Give this user write access to the file and its folder, or name another store."
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return errors.StorageBusyError(f"{where} stayed locked by another process for too long. {_AGAIN}")
    if name == "SQLITE_NOTADB":
        return errors.NotOursError(f"{where} is not a SQLite database. Name another file.")
    if name.startswith("SQLITE_CANTOPEN"):
        return errors.StorageError(
            f"{where} cannot be opened. Check that the folder exists and may be written; an archive that has a -wal "
            "file beside it must be copied with that file to such a folder."
        )
    if said.startswith("no such table: ds_"):
        return errors.StorageReplacedError(
            f"{where} no longer holds the tables of this version ({said}). If it was restored from an older copy, run: "
            "doublesampling db upgrade"
        )
    if name.startswith("SQLITE_CORRUPT"):
        return errors.StorageError(f"{where} is damaged ({said}). Restore it from a copy.")
    return errors.StorageError(f"{where} failed: {said}. {_AGAIN}")


def _from_postgresql(state: str, said: str, where: str) -> errors.DoubleSamplingError:
    if state == "53100":
        return errors.StorageFullError(f"The server of {where} has no room left. Free some space. {_AGAIN}")
    if state in ("25006", "42501"):
        return errors.StorageReadOnlyError(
            f"{where} may only be read by this user ({said}). Grant the right to write, or name another store."
        )
    if state == "3D000":
        return errors.StorageError(f"The database of {where} does not exist. Make it with createdb, or name another.")
    if state == "53300":
        return errors.StorageBusyError(f"{where} has no free connection. Raise max_connections, or use a pooler.")
    if state == "42P01" and '"ds_' in said:
        return errors.StorageReplacedError(
            f"{where} no longer holds the tables of this version ({said}). If it was restored from an older copy, run: "
            "doublesampling db upgrade"
        )
    if state.startswith("28"):
        return errors.StorageError(f"{where} refused the user or password. Check the URL.")
    return errors.StorageError(f"{where} failed: {said}. Is the server running and reachable? {_AGAIN}")
