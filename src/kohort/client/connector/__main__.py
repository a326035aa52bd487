"""Prints the table of transitions: `python -m kohort.client.connector`."""

from __future__ import annotations

import sys

from kohort.client.connector.table import shown

if __name__ == "__main__":
    sys.stdout.write(shown() + "\n")
