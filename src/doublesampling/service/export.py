"""Routes of files: the log as CSV, JSON lines or Parquet, written page by page, so that no log is too long."""

import io
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from doublesampling.errors import MissingExtraError
from doublesampling.live import reading
from doublesampling.live.experiment import Experiment
from doublesampling.service.access import Caller, Reader, TheDesk
from doublesampling.service.desk import Desk

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])
_PAGE = 5000  # decisions in memory at once


def _file(media: str, about: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {media: {"schema": {"type": "string", "format": "binary"}}}, "description": about}}


@router.get("/export.csv", response_class=StreamingResponse, responses=_file("text/csv", "one line per decision"))
async def export_csv(desk: TheDesk, caller: Reader, name: str) -> StreamingResponse:
    """Export the decisions with their latest outcomes as CSV."""
    return await _export(desk, caller, name, "csv", "text/csv")


@router.get(
    "/export.jsonl",
    response_class=StreamingResponse,
    responses=_file("application/x-ndjson", "one JSON object per decision and line"),
)
async def export_jsonl(desk: TheDesk, caller: Reader, name: str) -> StreamingResponse:
    """Export the decisions with their latest outcomes as JSON lines."""
    return await _export(desk, caller, name, "jsonl", "application/x-ndjson")


@router.get(
    "/export.parquet",
    response_class=StreamingResponse,
    responses=_file("application/vnd.apache.parquet", "a Parquet file"),
)
async def export_parquet(desk: TheDesk, caller: Reader, name: str) -> StreamingResponse:
    """Export the decisions with their latest outcomes as a Parquet file."""
    return await _export(desk, caller, name, "parquet", "application/vnd.apache.parquet")


async def _export(desk: Desk, caller: Caller, name: str, form: str, media: str) -> StreamingResponse:
    experiment = await desk.experiment(name)
    pieces = _pieces(desk, caller, experiment, _Parquet() if form == "parquet" else _Text(form))
    first = await anext(pieces)  # what fails at once still fails as a problem

    async def every() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in experiment.name)[:80]
    headers = {"Content-Disposition": f'attachment; filename="{plain}.{form}"'}
    return StreamingResponse(every(), media_type=media, headers=headers)


async def _pieces(
    desk: Desk, caller: Caller, experiment: Experiment, write: Callable[[Any], bytes]
) -> AsyncIterator[bytes]:
    """The file in pieces, one per page; each page is read and written in a thread for long reads."""
    after, last = 0, False

    def page(after: int) -> tuple[bytes, int, bool]:
        frame = reading.table(experiment._book, after=after, limit=_PAGE)
        piece = write(frame) if len(frame) or after == 0 else b""
        over = len(frame) < _PAGE
        return piece + (write(None) if over else b""), int(frame["number"].iloc[-1]) if len(frame) else after, over

    with desk.exporting(caller.shown):
        while not last:
            piece, after, last = await desk.next_page(page, after)
            yield piece


class _Text:
    """Frames as CSV or JSON lines; None ends the file."""

    def __init__(self, form: str) -> None:
        self._form, self._begun = form, False

    def __call__(self, frame: Any) -> bytes:
        if frame is None:
            return b""
        written = io.BytesIO()
        reading._write(frame, self._form, written)
        text = written.getvalue()
        headed, self._begun = self._form == "csv" and self._begun, True
        return text.partition(b"\n")[2] if headed else text  # one line of headings is enough


class _Parquet:
    """Frames as a Parquet file; None ends it."""

    def __init__(self) -> None:
        try:
            import pyarrow as pa  # type: ignore[import-untyped]
            import pyarrow.parquet as pq  # type: ignore[import-untyped]
        except ImportError:
            raise MissingExtraError(
                "Parquet files need pyarrow on the server. In a clone: pip install '.[data]'"
            ) from None
        self._arrow, self._parquet, self._out = pa, pq, _Sink()
        self._writer: Any = None

    def __call__(self, frame: Any) -> bytes:
        if frame is None:
            self._writer.close()
        else:
            page = self._arrow.Table.from_pandas(_typed(frame), preserve_index=False)
            self._writer = self._writer or self._parquet.ParquetWriter(self._out, page.schema)
            self._writer.write_table(page.cast(self._writer.schema))
        return self._out.take()


class _Sink(io.RawIOBase):
    """A file that hands out what was written since the last time."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """It may be written."""
        return True

    def write(self, part: Any) -> int:
        """Keep a piece until ``take``."""
        self._parts.append(bytes(part))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        """How much was written in all."""
        return self._size

    def take(self) -> bytes:
        """Hand out what is kept."""
        found, self._parts = b"".join(self._parts), []
        return found


def _typed(frame: Any) -> Any:
    """Texts stay texts on a page where all of them are missing."""
    texts = [c for c in ("unit", "request_key", "context", "reason") if c in frame]
    return frame.astype(dict.fromkeys(texts, "string"))
