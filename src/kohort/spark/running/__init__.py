"""Runs a compiled program: an instance of the application, its lanes and their epochs."""

from kohort.spark.running.application import run_application
from kohort.spark.running.problems import ApplicationError

__all__ = ["ApplicationError", "run_application"]
