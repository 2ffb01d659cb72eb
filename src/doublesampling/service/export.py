"""Routes of files: the log as CSV, JSON lines or Parquet, written page by page, so that no log is too long."""

import io
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from doublesampling.errors import MissingExtraError
from doublesampling.live import reading
from doublesampling.live.experiment import Experiment
from doublesampling.service.access import Reader, TheDesk

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])
_PAGE = 5000  # decisions in memory at once
_PIECE = 1 << 18


def _answer(pieces: Iterator[bytes], experiment: Experiment, form: str, media: str) -> StreamingResponse:
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in experiment.name)[:80]
    headers = {"Content-Disposition": f'attachment; filename="{plain}.{form}"'}
    return StreamingResponse(pieces, media_type=media, headers=headers)


def _file(media: str, about: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {media: {"schema": {"type": "string", "format": "binary"}}}, "description": about}}


@router.get("/export.csv", response_class=StreamingResponse, responses=_file("text/csv", "one line per decision"))
async def export_csv(desk: TheDesk, caller: Reader, name: str) -> StreamingResponse:
    """The decisions with their latest outcomes as CSV."""
    experiment = await desk.experiment(name)
    return _answer(await desk.read(_begun, _text(experiment, "csv")), experiment, "csv", "text/csv")


@router.get(
    "/export.jsonl",
    response_class=StreamingResponse,
    responses=_file("application/x-ndjson", "one JSON object per decision and line"),
)
async def export_jsonl(desk: TheDesk, caller: Reader, name: str) -> StreamingResponse:
    """The decisions with their latest outcomes as JSON lines."""
    experiment = await desk.experiment(name)
    return _answer(await desk.read(_begun, _text(experiment, "jsonl")), experiment, "jsonl", "application/x-ndjson")


@router.get(
    "/export.parquet",
    response_class=StreamingResponse,
    responses=_file("application/vnd.apache.parquet", "a Parquet file"),
)
async def export_parquet(desk: TheDesk, caller: Reader, name: str) -> StreamingResponse:
    """The decisions with their latest outcomes as a Parquet file."""
    experiment = await desk.experiment(name)
    file = await desk.read(_parquet, experiment)
    return _answer(_read(file), experiment, "parquet", "application/vnd.apache.parquet")


def _begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, the first of them made already: what fails at once still fails as a problem."""
    first = next(pieces, b"")

    def every() -> Iterator[bytes]:
        yield first
        yield from pieces

    return every()


def _pages(experiment: Experiment) -> Iterator[Any]:
    after = 0
    while True:
        frame = reading.table(experiment._book, after=after, limit=_PAGE)
        if len(frame) or after == 0:
            yield frame
        if len(frame) < _PAGE:
            return
        after = int(frame["number"].iloc[-1])


def _text(experiment: Experiment, form: str) -> Iterator[bytes]:
    for i, frame in enumerate(_pages(experiment)):
        written = io.BytesIO()
        reading._write(frame, form, written)
        text = written.getvalue()
        yield text if form == "jsonl" or i == 0 else text.partition(b"\n")[2]  # one line of headings is enough


def _parquet(experiment: Experiment) -> IO[bytes]:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError(
            "Parquet files need pyarrow on the server: pip install 'doublesampling[data]'"
        ) from None
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  _read closes it, when all is sent
    writer = None
    for frame in _pages(experiment):
        page = pa.Table.from_pandas(_typed(frame), preserve_index=False)
        writer = writer or pq.ParquetWriter(file, page.schema)
        writer.write_table(page.cast(writer.schema))
    assert writer is not None
    writer.close()
    file.seek(0)
    return file


def _typed(frame: Any) -> Any:
    """Texts stay texts on a page where all of them are missing."""
    texts = [c for c in ("unit", "request_key", "context", "reason") if c in frame]
    return frame.astype(dict.fromkeys(texts, "string"))


def _read(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece
