"""The programs that work on the rows, each in a process of its own."""
