"""Errors of Spark and of others, in plain words."""

from __future__ import annotations

from kohort.spark.runtime.plain_errors import plain

FROM_SPARK = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
    process()
  File "/home/me/program.py", line 7, in slower
    return 1 / frame["zero"]
ZeroDivisionError: division by zero

JVM stacktrace:
org.apache.spark.SparkException: Job aborted due to stage failure
"""


def test_errors_in_plain_words() -> None:
    assert plain(RuntimeError(FROM_SPARK)) == "ZeroDivisionError: division by zero"
    assert plain(ValueError("first\nsecond")) == "first"
    assert plain(ValueError()) == "ValueError"
