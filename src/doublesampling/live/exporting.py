"""Export an experiment to files: its decisions and, on request, its audit trail."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pandas as pd

from doublesampling import checks
from doublesampling.errors import OutputError, SettingError, missing_extra
from doublesampling.live.design import normalized
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.queries import audit
from doublesampling.live.queries.tables import PER_ARM, decision_table

FORMATS = ("parquet", "csv", "jsonl")
_JSON_COLUMNS = (*PER_ARM, "context", "detail")  # columns of JSON text
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes a cell that starts so for a formula
# characters that a file system refuses, or that have a meaning in a shell
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)  # device names on Windows


def file_name(name: str, ending: str) -> str:
    """Return a file name in the current folder for an experiment of any name.

    >>> file_name("../../etc/passwd", ".csv"), file_name("NUL", ".csv"), file_name("Versuch 7", ".csv")
    ('-..-etc-passwd.csv', '_NUL.csv', 'Versuch 7.csv')
    """
    plain = _UNSAFE.sub("-", normalized(name)).lstrip(". ").rstrip(". ")
    while len(plain.encode()) > 150:  # file systems allow 255 bytes
        plain = plain[:-1]
    plain = plain or "experiment"
    return f"{'_' if _RESERVED.fullmatch(plain) else ''}{plain}{ending}"


def export(
    ref: ExperimentRef, form: str, target: str | Path | IO[bytes] | None, *, force: bool, with_audit: bool
) -> Path | IO[bytes]:
    """Write the decisions to a file or binary stream, and the audit trail to a second file where asked."""
    checks.one_of("format", form, FORMATS)
    where = Path(file_name(ref.name, f".{form}")) if target is None else target
    if not isinstance(where, (str, Path)):
        if with_audit:
            raise SettingError("audit=True writes a second file, so it needs a path. Or use exp.audit().")
        _write_file(decision_table(ref), form, where)
        return where
    path = Path(where)
    beside = path.with_name(f"{path.stem}-audit{path.suffix}")
    for each in (path, beside) if with_audit else (path,):
        check_free(each, force)
    _write_file(decision_table(ref), form, path)
    if with_audit:
        _write_file(audit.to_frame(ref), form, beside)
    return path


def export_audit(ref: ExperimentRef, form: str, target: str | Path | None, *, force: bool) -> Path:
    """Write the audit trail to a file, by default named after the experiment."""
    checks.one_of("format", form, FORMATS)
    path = Path(file_name(f"{ref.name}-audit", f".{form}") if target is None else target)
    check_free(path, force)
    _write_file(audit.to_frame(ref), form, path)
    return path


def write_table(frame: pd.DataFrame, form: str, target: Path | IO[bytes]) -> None:
    """Write a table as CSV, JSON lines or Parquet.

    In CSV, a text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    if form == "csv":
        texts = {name: frame[name].map(_escape_formula) for name in frame.columns if _is_text(frame[name])}
        frame.assign(**texts).to_csv(target, index=False)
    elif form == "jsonl":
        _write(target, "".join(_json_lines(frame)).encode())
    else:
        try:
            frame.to_parquet(target, index=False)
        except ImportError:
            raise missing_extra("Parquet files need pyarrow", "data") from None


def _json_lines(frame: pd.DataFrame) -> Iterator[str]:
    """Yield one JSON object per row; numbers keep every digit, times are UTC with microseconds."""
    columns = [_json_values(frame[name], name) for name in frame.columns]
    names = list(frame.columns)
    for row in zip(*columns, strict=True):
        yield json.dumps(dict(zip(names, row, strict=True)), allow_nan=False) + "\n"


def _json_values(column: "pd.Series[Any]", name: str) -> list[Any]:
    if name in _JSON_COLUMNS:
        return [None if v is None else json.loads(v) for v in column]
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]


def _write(target: Path | IO[bytes], content: bytes) -> None:
    if isinstance(target, Path):
        target.write_bytes(content)
    else:
        target.write(content)


def _is_text(column: pd.Series) -> bool:
    return bool(pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column))


def _escape_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def check_free(path: Path, force: bool) -> None:
    """Raise OutputError where a file cannot be written, or exists and ``force`` is False."""
    if path.is_dir() or not path.parent.is_dir():
        raise OutputError(f"{str(path)!r} cannot be written: name a file in a folder that exists.")
    if path.exists() and not force:
        raise OutputError(f"{str(path)!r} exists. Name another file, or pass force=True.")


def _write_file(frame: pd.DataFrame, form: str, target: Path | IO[bytes]) -> None:
    try:
        write_table(frame, form, target)
    except OSError as problem:
        raise OutputError(f"{str(target)!r} cannot be written: {problem.strerror or problem}.") from None
