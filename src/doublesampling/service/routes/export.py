"""Routes of exports: decisions and audit trail as CSV, JSON lines or Parquet, streamed page by page."""

import io
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from doublesampling.errors import missing_extra
from doublesampling.live.experiment import Experiment
from doublesampling.live.exporting import write_table
from doublesampling.live.queries import audit
from doublesampling.live.queries.tables import decision_table
from doublesampling.service.access import Caller, Reader, State
from doublesampling.service.state import ServiceState

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])
_PAGE = 5000  # decisions in memory at once


def _file(media: str, about: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {media: {"schema": {"type": "string", "format": "binary"}}}, "description": about}}


FORMS = {
    "csv": ("text/csv", "one line each"),
    "jsonl": ("application/x-ndjson", "one JSON object per line"),
    "parquet": ("application/vnd.apache.parquet", "a Parquet file"),
}


def _add_routes(form: str) -> None:
    """Add the export routes of one format: the decisions, and the audit trail."""
    media, about = FORMS[form]
    options: dict[str, Any] = {"response_class": StreamingResponse, "responses": _file(media, about)}

    async def export(
        state: State,
        caller: Reader,
        name: str,
        after: Annotated[int, Query(ge=0, lt=2**62, description="only decisions after this number")] = 0,
        limit: Annotated[int | None, Query(ge=0, lt=2**62, description="how many decisions at most")] = None,
        status: Annotated[Literal["all", "waiting"], Query()] = "all",
    ) -> StreamingResponse:
        pages = _DecisionPages(after, limit, status == "waiting")
        return await _export(state, caller, name, form, pages)

    async def export_audit(state: State, caller: Reader, name: str) -> StreamingResponse:
        return await _export(state, caller, name, form, _audit)

    export.__doc__ = f"Export the decisions with their latest outcomes: {about}."
    export_audit.__doc__ = f"Export the audit trail, one entry per decision, outcome, correction and event: {about}."
    router.get(f"/export.{form}", name=f"export_{form}", **options)(export)
    router.get(f"/audit.{form}", name=f"audit_{form}", **options)(export_audit)


class _DecisionPages:
    """Reads the decisions of an export page by page."""

    def __init__(self, after: int, limit: int | None, waiting: bool) -> None:
        self._after, self._left, self._waiting = after, limit, waiting

    def __call__(self, experiment: Experiment, after: Any) -> tuple[Any, Any]:
        """Return a page of decisions after a number, and the number for the next page; None at the end."""
        size = _PAGE if self._left is None else min(_PAGE, self._left)
        start = self._after if after is None else after
        frame = decision_table(experiment.session, after=start, limit=size, waiting=self._waiting)
        self._left = None if self._left is None else self._left - len(frame)
        more = len(frame) == _PAGE and self._left != 0
        return frame, int(frame["number"].iloc[-1]) if more else None


def _audit(experiment: Experiment, after: Any) -> tuple[Any, Any]:
    """Return a page of the audit trail after a cursor, and the cursor of the next page; None at the end."""
    frame = audit.to_frame(experiment.session, after, _PAGE)
    return frame, frame["cursor"].iloc[-1] if len(frame) == _PAGE else None


Read = Callable[[Experiment, Any], tuple[Any, Any]]


async def _export(state: ServiceState, caller: Caller, name: str, form: str, read: Read) -> StreamingResponse:
    experiment = await state.experiment(name)
    pieces = _pieces(state, caller, experiment, read, _Parquet() if form == "parquet" else _Text(form))
    first = await anext(pieces)  # an error on the first page still becomes an error response

    async def every() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in experiment.name)[:80]
    suffix = "-audit" if read is _audit else ""
    headers = {"Content-Disposition": f'attachment; filename="{plain}{suffix}.{form}"'}
    return StreamingResponse(every(), media_type=FORMS[form][0], headers=headers)


async def _pieces(
    state: ServiceState, caller: Caller, experiment: Experiment, read: Read, write: Callable[[Any], bytes]
) -> AsyncIterator[bytes]:
    """Yield the file in pieces, one per page; each page is read in a thread for long reads."""

    def page(after: Any) -> tuple[bytes, Any]:
        frame, following = read(experiment, after)
        piece = write(frame) if len(frame) or after is None else b""
        return piece + (write(None) if following is None else b""), following

    after = None
    with state.exporting(caller.shown):
        while True:
            piece, after = await state.next_page(page, after)
            yield piece
            if after is None:
                return


class _Text:
    """Writes frames as CSV or JSON lines; None ends the file."""

    def __init__(self, form: str) -> None:
        self._form, self._begun = form, False

    def __call__(self, frame: Any) -> bytes:
        if frame is None:
            return b""
        written = io.BytesIO()
        write_table(frame, self._form, written)
        text = written.getvalue()
        headed, self._begun = self._form == "csv" and self._begun, True
        return text.partition(b"\n")[2] if headed else text  # only the first page has a line of headings


class _Parquet:
    """Writes frames as a Parquet file; None ends it."""

    def __init__(self) -> None:
        try:
            import pyarrow as pa  # type: ignore[import-untyped]
            import pyarrow.parquet as pq  # type: ignore[import-untyped]
        except ImportError:
            raise missing_extra("Parquet files need pyarrow on the server", "data") from None
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
    """A file that returns what was written since the last ``take``."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, part: Any) -> int:
        """Keep a piece until ``take``; return its size."""
        self._parts.append(bytes(part))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        """Return how many bytes were written in total."""
        return self._size

    def take(self) -> bytes:
        """Return the kept pieces and drop them."""
        found, self._parts = b"".join(self._parts), []
        return found


def _typed(frame: Any) -> Any:
    """Return the frame with text columns typed as text also where all their values are missing."""
    texts = [c for c in ("decision", "unit", "request_key", "context", "arm_name", "reason", "detail") if c in frame]
    return frame.astype(dict.fromkeys(texts, "string"))


for _form in FORMS:
    _add_routes(_form)
