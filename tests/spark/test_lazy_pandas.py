"""Loading pandas later than pyarrow: in processes of their own, since modules are loaded once."""

from __future__ import annotations

import subprocess
import sys
import textwrap

START = """
import sys
from kohort.spark.lazy_pandas import load_pandas_later
load_pandas_later()
import pyarrow as pa
pa.table({"a": ["x", None]})
assert "pandas" not in sys.modules
"""


def run(program: str) -> list[str]:
    """The lines that a program prints after `START`."""
    command = [sys.executable, "-c", START + textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_pyarrow_knows_pandas_once_something_imports_it() -> None:
    program = """
    import pandas as pd
    numbers = pd.Series([1.0, float("nan")])
    print(pa.array(numbers).null_count, pa.array([1.0, float("nan")]).null_count)
    print(pa.Table.from_pandas(pd.DataFrame({"a": numbers})).to_pandas().equals(pd.DataFrame({"a": numbers})))
    """
    assert run(program) == ["1 0", "True"]


def test_pyarrow_loads_pandas_itself_where_it_needs_it() -> None:
    assert run('print(type(pa.array([1]).to_pandas()).__module__.partition(".")[0])') == ["pandas"]


def test_looking_whether_pandas_is_there_loads_nothing() -> None:
    program = """
    from importlib.util import find_spec
    print(find_spec("pandas") is not None, "pandas" in sys.modules)
    import pandas as pd
    print(pa.array(pd.Series([float("nan")])).null_count)
    """
    assert run(program) == ["True False", "1"]


def test_pandas_that_is_loaded_already_stays() -> None:
    program = """
    import pandas as pd
    load_pandas_later()
    print(pa.array(pd.Series([float("nan")])).null_count)
    """
    assert run(program) == ["1"]
