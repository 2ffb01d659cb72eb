"""Files of an experiment: its decisions, and beside them, on request, its audit trail."""

import re
from pathlib import Path
from typing import IO

import pandas as pd

from doublesampling import checks
from doublesampling.errors import OutputError, SettingError
from doublesampling.live import audit, reading
from doublesampling.live.book import Book
from doublesampling.live.design import normalized

# what no file system of ours takes, or what means something to a shell or a spreadsheet of files
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)  # devices of Windows


def file_name(name: str, ending: str) -> str:
    """Return a file name in the current folder for an experiment of any name.

    >>> file_name("../../etc/passwd", ".csv"), file_name("NUL", ".csv"), file_name("Versuch 7", ".csv")
    ('-..-etc-passwd.csv', '_NUL.csv', 'Versuch 7.csv')
    """
    plain = _UNSAFE.sub("-", normalized(name)).lstrip(". ").rstrip(". ")
    while len(plain.encode()) > 150:  # file systems take 255 bytes
        plain = plain[:-1]
    plain = plain or "experiment"
    return f"{'_' if _RESERVED.fullmatch(plain) else ''}{plain}{ending}"


def export(
    book: Book, form: str, target: str | Path | IO[bytes] | None, *, force: bool, with_audit: bool
) -> Path | IO[bytes]:
    """Write the decisions to a file, or to anything that takes bytes; the audit trail to a second file beside it."""
    checks.one_of("format", form, reading.FORMATS)
    where = Path(file_name(book.name, f".{form}")) if target is None else target
    if not isinstance(where, (str, Path)):
        if with_audit:
            raise SettingError("audit=True writes a second file, so it needs a path. Or use exp.audit().")
        _write_file(reading.table(book), form, where)
        return where
    path = Path(where)
    beside = path.with_name(f"{path.stem}-audit{path.suffix}")
    for each in (path, beside) if with_audit else (path,):
        _check_free(each, force)
    _write_file(reading.table(book), form, path)
    if with_audit:
        _write_file(audit.frame(book), form, beside)
    return path


def export_audit(book: Book, form: str, target: str | Path | None, *, force: bool) -> Path:
    """Write the audit trail to a file, by default named after the experiment."""
    checks.one_of("format", form, reading.FORMATS)
    path = Path(file_name(f"{book.name}-audit", f".{form}") if target is None else target)
    _check_free(path, force)
    _write_file(audit.frame(book), form, path)
    return path


def _check_free(path: Path, force: bool) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise OutputError(f"{str(path)!r} cannot be written: name a file in a folder that exists.")
    if path.exists() and not force:
        raise OutputError(f"{str(path)!r} exists. Name another file, or pass force=True.")


def _write_file(frame: pd.DataFrame, form: str, target: Path | IO[bytes]) -> None:
    try:
        reading._write(frame, form, target)
    except OSError as problem:
        raise OutputError(f"{str(target)!r} cannot be written: {problem.strerror or problem}.") from None
