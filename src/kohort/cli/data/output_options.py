"""How `kohort consume` writes records, and where."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from kohort.cli.data.pipes import Interrupter
from kohort.cli.data.record_path import RecordPath, Render
from kohort.cli.data.template import parse_template
from kohort.cli.data.writers import LineWriter, Writer
from kohort.cli.terminal import fail, printable
from kohort.extras import ARROW, require

FORMATS: Final = ("text", "json", "parquet")
FAILED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """The format, the file (None for standard output), what a line of text has, and whether to tell how far it is."""

    format: str
    file: str | None
    key: bool
    key_separator: str | None
    timestamp: bool
    headers: bool
    template: str | None
    null: str
    quiet: bool

    @property
    def shows_progress(self) -> bool:
        return not self.quiet and not (self.file is None and sys.stdout.isatty())

    def render(self, path: RecordPath) -> Render | None:
        """The function that renders records as bytes; None for a Parquet file. The command ends if there is none.

        Raises:
            MissingExtraError: Parquet needs one.
        """
        if self.format not in FORMATS:
            fail(f"--format {self.format}: one of {', '.join(FORMATS)} is wanted")
        if self.format == "text":
            try:
                return path.text(parse_template(self._template()), self.null.encode(errors="surrogateescape"))
            except ValueError as error:
                fail(f"--template: {error}")
        if self._fields() or self.template is not None:
            fail(f"--format {self.format} has all fields: --key, --timestamp, --headers and --template are for text")
        if self.format == "json":
            return path.render_json
        if self.file is None:
            fail("--format parquet needs --output FILE")
        require("arrow", "kohort consume --format parquet", ARROW)
        return None

    def _fields(self) -> bool:
        """Whether options name fields of a line of text."""
        return self.key or self.key_separator is not None or self.timestamp or self.headers

    def _template(self) -> str:
        if self.template is not None:
            if self._fields():
                fail("--template excludes --key, --key-separator, --timestamp and --headers")
            return self.template
        separator = (self.key_separator or "\t").replace("\\", "\\\\").replace("%", "%%")
        before = (("%D", "\t", self.timestamp), ("%h", "\t", self.headers))
        shown = "".join(field + between for field, between, wanted in before if wanted)
        return shown + (f"%k{separator}" if self.key or self.key_separator is not None else "") + "%v"

    @contextmanager
    def opened(self, render: Render | None, interrupter: Interrupter) -> Iterator[Writer]:
        """Opens the output; the command ends if it can't be written."""
        if self.file is None:
            assert render is not None
            sys.stdout.flush()
            yield LineWriter(sys.stdout.fileno(), render, interrupter)
            return
        try:
            file = Path(self.file).open("wb", buffering=0)  # noqa: SIM115 (closed below)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            fail(f"--output: can't write {printable(self.file)}: {reason}", FAILED)
        with file, closing(self._writer(file, render, interrupter)) as writer:
            yield writer

    def _writer(self, file: FileIO, render: Render | None, interrupter: Interrupter) -> Writer:
        if render is not None:
            return LineWriter(file.fileno(), render, interrupter)
        from kohort.cli.data.parquet_writer import ParquetWriter

        return ParquetWriter(file)
