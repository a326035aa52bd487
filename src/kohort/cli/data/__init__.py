"""Records from files and into files, by columns or rows: the parts of `kohort produce` and `kohort consume`."""
