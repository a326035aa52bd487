"""Prints the table of transitions: `python -m kohort.client.membership`."""

from __future__ import annotations

import sys

from kohort.client.membership.member_states import shown

if __name__ == "__main__":
    sys.stdout.write(shown() + "\n")
