"""Errors: Kafka's error codes, and exceptions for bytes that don't decode.

`ErrorCode` lists the codes of responses; `ProtocolError` is raised for bytes or values that don't fit a message's
declaration, `CorruptRecordError` for invalid record batches.
"""

from __future__ import annotations

from kohort.protocol.error_codes import ErrorCode

__all__ = ["CorruptRecordError", "ErrorCode", "KafkaError", "ProtocolError", "UnsupportedVersionError", "shown"]


class KafkaError(Exception):
    """A broker's error: its code and message.

    `error.code.retriable` is whether the same request may succeed later.
    """

    def __init__(self, code: ErrorCode, detail: str | None = None) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code.name} ({self.code.value})" + (f": {self.detail}" if self.detail else "")


class ProtocolError(ValueError):
    """Bytes that aren't a valid message, or values that the message can't encode.

    Attributes:
        message: name of the message, such as "HeartbeatRequest".
        version: version of the message that was decoded or encoded.
        path: Kafka's name of the field, from the message down: "Topics[2].Partitions[0].Leader"; "" for the message.
        offset: byte offset where decoding failed, counted from the start of the message; None when encoding.
        reason: what is wrong there.
    """

    def __init__(self, message: str, version: int, path: str, offset: int | None, reason: str) -> None:
        field = f", field {path}" if path else ""
        where = f", byte {offset}" if offset is not None else ""
        super().__init__(f"{message} v{version}{field}{where}: {reason}")
        self.message = message
        self.version = version
        self.path = path
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str, int, str, int | None, str]]:
        return type(self), (self.message, self.version, self.path, self.offset, self.reason)


class UnsupportedVersionError(ProtocolError):
    """An undeclared version of a message, or a value for a field that the version doesn't have."""


class CorruptRecordError(ValueError):
    """A record batch whose header, checksum, compression or records are invalid.

    Attributes:
        base_offset: base offset in the batch's header; None if it couldn't be read.
        position: byte offset of the batch in the buffer that was read.
        reason: what is wrong with it.
    """

    def __init__(self, base_offset: int | None, position: int, reason: str) -> None:
        which = "a batch" if base_offset is None else f"the batch with base offset {base_offset}"
        super().__init__(f"{which} at byte {position}: {reason}")
        self.base_offset = base_offset
        self.position = position
        self.reason = reason

    def __reduce__(self) -> tuple[type[CorruptRecordError], tuple[int | None, int, str]]:
        return type(self), (self.base_offset, self.position, self.reason)


def shown(value: object, limit: int = 80) -> str:
    """Formats `value` for an error message: its `repr` if that is short and works, otherwise its type."""
    if isinstance(value, (str, bytes, bytearray, list, tuple, dict)) and len(value) > limit:
        return f"{type(value).__name__} of length {len(value)}"
    try:
        text = repr(value)
    except Exception:  # a failing repr must not hide the error
        return f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
