"""Runs a compiled program: an instance of the application, its lanes and their epochs."""

from kohort.spark.errors import ApplicationError
from kohort.spark.runtime.application import run_application

__all__ = ["ApplicationError", "run_application"]
