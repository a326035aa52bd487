"""`python -m kohort.cli`, the same as `kohort`."""

from kohort.cli import main

main()
