"""Runs a compiled program: an instance of the application, its lanes and their epochs."""

from kohort.spark.runtime.application import run_application
from kohort.spark.runtime.errors import ApplicationError

__all__ = ["ApplicationError", "run_application"]
