"""A finished report: its blocks, and how it is written to a file."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from doublesampling.errors import OutputError
from doublesampling.paper.document import Block, Paragraph, Picture, to_html, to_markdown

NO_CLAIM = (
    "This document was written by a computer program from stored data. It is not a claim of regulatory compliance, it "
    "does not replace a statistical analysis plan or the judgement of a statistician, and the items of CONSORT-ACE "
    "that it names are only those to which the stored data can contribute."
)
ENDINGS = (".html", ".md")


@dataclass(frozen=True)
class Report:
    """A report. ``html`` and ``markdown`` are texts; ``save`` writes a file whose ending chooses between them."""

    title: str
    blocks: tuple[Block, ...]
    pictures: tuple[tuple[str, bytes, str], ...] = ()
    """Heading below which a picture stands, PNG, caption."""

    @property
    def html(self) -> str:
        """One page with everything in it, which needs no network."""
        with tempfile.TemporaryDirectory() as folder:
            return to_html(self._with_pictures(Path(folder)), self.title)

    @property
    def markdown(self) -> str:
        """The same without pictures."""
        return to_markdown(list(self.blocks), Path())

    def _with_pictures(self, folder: Path) -> list[Block]:
        blocks: list[Block] = []
        for block in self.blocks:
            blocks.append(block)
            for i, (heading, png, caption) in enumerate(self.pictures):
                if getattr(block, "text", None) == heading and not isinstance(block, Paragraph):
                    path = folder / f"{i}.png"
                    path.write_bytes(png)
                    blocks.append(Picture(path, caption))
        return blocks

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the report to a .html or .md file and return its path."""
        file = Path(path)
        if file.suffix not in ENDINGS:
            raise OutputError(f"A report is written to a file that ends in .html or .md, got {str(path)!r}.")
        if file.exists() and not force:
            raise OutputError(f"{str(path)!r} exists. Name another file, or add force (--force) to overwrite it.")
        try:
            file.write_text(self.html if file.suffix == ".html" else self.markdown, encoding="utf-8")
        except OSError as problem:
            raise OutputError(f"{str(path)!r} cannot be written: {problem.strerror or problem}.") from None
        return file

    def write(self, stream: IO[str], form: str = "html") -> None:
        """Write the report to an open text stream, as "html" or "md"."""
        stream.write(self.html if form == "html" else self.markdown)

    def _repr_html_(self) -> str:
        return self.html
