"""Files that an export writes: complete or absent, also where a download breaks off."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from doublesampling import checks
from doublesampling.client.calls import Call, experiment_path
from doublesampling.errors import OutputError, SettingError
from doublesampling.live.exporting import FORMATS, check_free, file_name


@dataclass(frozen=True)
class Download:
    """A request whose response goes to a file or a binary stream."""

    call: Call[Any]
    target: Path | IO[bytes]

    @contextmanager
    def file(self) -> Iterator[IO[bytes]]:
        """Yield a file to write to; its content gets to the target when the block ends without an error."""
        try:
            if isinstance(self.target, Path):
                with self._beside(self.target) as file:
                    yield file
            else:
                with tempfile.TemporaryFile() as file:
                    yield file
                    file.seek(0)
                    shutil.copyfileobj(file, self.target)
        except OSError as problem:
            if isinstance(problem, OutputError) or problem.errno is None:
                raise
            raise OutputError(f"{str(self.target)!r} cannot be written: {problem.strerror or problem}.") from None

    @staticmethod
    @contextmanager
    def _beside(target: Path) -> Iterator[IO[bytes]]:
        number, name = tempfile.mkstemp(prefix=f".{target.name[:50]}.", suffix=".part", dir=target.parent)
        try:
            with os.fdopen(number, "w+b") as file:
                yield file
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def export(
    name: str, form: str, target: str | Path | IO[bytes] | None, *, force: bool, with_audit: bool
) -> tuple[Path | IO[bytes], list[Download]]:
    """Return where the decisions go, and the downloads of an export: the decisions and, if asked, the audit trail."""
    checks.one_of("format", form, FORMATS)
    where = Path(file_name(name, f".{form}")) if target is None else target
    decisions = _request(name, f"export.{form}")
    if not isinstance(where, (str, Path)):
        if with_audit:
            raise SettingError("audit=True writes a second file, so it needs a path. Or use exp.audit().")
        return where, [Download(decisions, where)]
    path = Path(where)
    downloads = [Download(decisions, path)]
    if with_audit:
        beside = path.with_name(f"{path.stem}-audit{path.suffix}")
        downloads.append(Download(_request(name, f"audit.{form}"), beside))
    for each in downloads:
        assert isinstance(each.target, Path)
        check_free(each.target, force)
    return path, downloads


def _request(name: str, file: str) -> Call[Any]:
    return Call(method="GET", path=experiment_path(name, file), parse=lambda found, _: found)
