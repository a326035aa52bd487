"""Checks what functions of the user's give, column by column, and says where they are written."""

from __future__ import annotations

import pyarrow as pa


def typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, all of which the table has, in its types.

    Raises:
        TypeError: one can't be; names the column, its type, and the one that is wanted.
    """
    columns = []
    for field in schema:
        if len(table.schema.get_all_field_indices(field.name)) > 1:
            raise TypeError(f"column {field.name!r} is there twice")
        given = table[field.name]
        try:
            columns.append(given.cast(field.type))
        except (pa.ArrowException, ValueError) as error:
            raise TypeError(f"column {field.name!r} is {given.type}, and must be {field.type}: {error}") from None
        if given.null_count and not field.nullable:
            raise TypeError(f"column {field.name!r} has nulls, and must have none")
    return pa.Table.from_arrays(columns, schema=schema)


def written_in(function: object) -> str:
    """Where a function is written, as messages end with it; "" if it is something else that can be called."""
    code = getattr(function, "__code__", None)
    return "" if code is None else f" ({code.co_filename}, line {code.co_firstlineno})"
