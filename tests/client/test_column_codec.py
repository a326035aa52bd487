"""The module that decodes columns comes in a thread, also if that fails at first."""

from __future__ import annotations

import pytest

from kohort.client import column_codec
from kohort.protocol.records import columns
from tests.waiting import run


def test_it_is_loaded_once_and_tried_again_where_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(column_codec, "_module", None)
        calls: list[int] = []
        decode = columns.decode_columns

        def failing(data: bytes) -> columns.DecodedRecords:
            calls.append(1)
            if len(calls) <= 4:
                raise SystemError("AST constructor recursion depth mismatch")
            return decode(data)

        monkeypatch.setattr(columns, "decode_columns", failing)
        with pytest.raises(SystemError):
            await column_codec.columns_loaded()
        assert column_codec.columns_if_loaded() is None
        assert await column_codec.columns_loaded() is columns
        assert column_codec.columns_if_loaded() is columns
        assert column_codec.load_columns() is column_codec.load_columns()
        assert len(calls) == 5

    run(test())


def test_it_is_not_tried_again_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_codec, "_module", None)
    calls: list[int] = []

    def missing() -> None:
        calls.append(1)
        raise ModuleNotFoundError("No module named 'pyarrow'")

    monkeypatch.setattr(column_codec, "_loaded", missing)
    for _ in range(3):
        assert isinstance(column_codec.load_columns().exception(), ModuleNotFoundError)
        assert column_codec.columns_if_loaded() is None
    assert calls == [1]
