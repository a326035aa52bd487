"""Nothing but `kohort.spark.internals` reaches behind PySpark's public API."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("pyspark")

import pyspark

from kohort.spark import internals

SOURCES: Final = Path(internals.__file__).parents[1]
ADAPTER: Final = Path(internals.__file__)
PUBLIC: Final = {
    "pyspark", "pyspark.errors", "pyspark.sql", "pyspark.sql.datasource", "pyspark.sql.functions",
    "pyspark.sql.streaming.datasource", "pyspark.sql.types",
}  # fmt: skip
WITH_PRIVATE_ATTRIBUTES: Final = (
    "core/context.py", "sql/classic/column.py", "sql/classic/dataframe.py", "sql/conf.py", "sql/session.py",
)  # fmt: skip


def private_attributes() -> frozenset[str]:
    """What sessions, contexts, DataFrames and Columns have that is none of a program's business."""
    root = Path(pyspark.__file__).parent
    trees = [ast.parse((root / name).read_text()) for name in WITH_PRIVATE_ATTRIBUTES]
    names = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    # _repr_html_ and the like are IPython's, for everybody.
    return frozenset(
        name for name in names if name.startswith("_") and not (name.startswith("__") or name.endswith("_"))
    )


PRIVATE: Final = private_attributes()


def modules() -> Iterator[Path]:
    return (each for each in sorted(SOURCES.rglob("*.py")) if each != ADAPTER)


def reaches(tree: ast.Module) -> Iterator[str]:
    for node in (each for statement in tree.body if not is_export(statement) for each in ast.walk(statement)):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if name in PRIVATE:
                yield f"line {node.lineno}: .{name} is PySpark's own"
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]) if name in PRIVATE:
                yield f"line {node.lineno}: {name!r} is PySpark's own"
            case ast.Constant(value=str(text)) if text in set(internals.NodeName) or text.startswith("Column<"):
                yield f"line {node.lineno}: {text!r} is what Spark prints"
            case ast.ImportFrom(module=str(name)) if name.split(".")[0] in ("pyspark", "py4j") and name not in PUBLIC:
                yield f"line {node.lineno}: {name} isn't public"
            case ast.Import(names=names):
                for each in names:
                    if each.name.split(".")[0] in ("pyspark", "py4j") and each.name not in PUBLIC:
                        yield f"line {node.lineno}: {each.name} isn't public"


def is_export(statement: ast.stmt) -> bool:
    """Whether it lists a module's own names, of which some are called as nodes are."""
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
    return any(isinstance(each, ast.Name) and each.id in ("__all__", "_HOME") for each in targets)


def test_only_the_adapter_reaches_into_spark() -> None:
    found = {
        str(each.relative_to(SOURCES)): list(reaches(ast.parse(each.read_text())))
        for each in modules()
        if "pyspark" in each.read_text() or "spark" in each.relative_to(SOURCES).parts
    }
    assert {name: what for name, what in found.items() if what} == {}


def test_what_the_adapter_does_would_be_found_elsewhere() -> None:
    found = " ".join(reaches(ast.parse(ADAPTER.read_text())))
    for each in (
        "._jsparkSession",
        "._jsc",
        "'_jvm'",
        "'_jdf'",
        "'Union'",
        "pyspark.logger",
        "pyspark.sql.pandas.types",
    ):
        assert each in found, each
