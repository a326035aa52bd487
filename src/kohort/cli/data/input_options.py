"""What `kohort produce` reads records from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kohort.cli.data.file_producer import Reader
from kohort.cli.data.record_path import RecordPath
from kohort.cli.terminal import fail
from kohort.extras import ARROW, require

FORMATS: Final = ("lines", "json", "csv", "parquet", "records")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """The format, and how keys and values come out of it."""

    format: str
    key_separator: str | None
    key: str | None
    delimiter: str
    typed: bool
    null_keys: bool

    def reader(self, path: RecordPath) -> Reader:
        """The function that reads the format; the command ends if an option is for another one.

        Raises:
            MissingExtraError: the format needs one.
        """
        self._check()
        if self.format in ("csv", "parquet"):
            require("arrow", f"kohort produce --format {self.format}", ARROW)
        match self.format:
            case "lines":
                separator = None if self.key_separator is None else self.key_separator.encode(errors="surrogateescape")
                return lambda source: path.read_lines(source, separator)
            case "json":
                from kohort.cli.data.read_json import read_json

                return lambda source: map(path.block, read_json(source, self.key, null_keys=self.null_keys))
            case "records":
                from kohort.cli.data.read_json import read_json_records

                return lambda source: map(path.block, read_json_records(source))
            case "csv":
                from kohort.cli.data.read_csv import read_csv

                return lambda source: read_csv(
                    source, self.key, delimiter=self.delimiter, typed=self.typed, null_keys=self.null_keys
                )
            case _:
                from kohort.cli.data.read_parquet import read_parquet

                return lambda source: read_parquet(source, self.key, null_keys=self.null_keys)

    def _check(self) -> None:
        if self.format not in FORMATS:
            fail(f"--format {self.format}: one of {', '.join(FORMATS)} is wanted")
        if self.key_separator is not None and (self.format != "lines" or not self.key_separator):
            fail("--key-separator: some text, and for lines; the other formats have --key FIELD")
        if self.key is not None and self.format in ("lines", "records"):
            instead = "; --key-separator TEXT splits them" if self.format == "lines" else ""
            fail(f"--key: {self.format} have no fields{instead}")
        if self.null_keys and self.key is None:
            fail("--null-keys is for --key FIELD: it allows records without that field")
        if (self.typed or self.delimiter != ",") and self.format != "csv":
            fail("--typed and --delimiter are for --format csv")
        if self.format == "csv" and (len(self.delimiter) != 1 or not self.delimiter.isascii()):
            fail(f"--delimiter {self.delimiter!r}: one ASCII character is wanted")
