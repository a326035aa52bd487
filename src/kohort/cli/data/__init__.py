"""Records from files and into files, as Arrow tables: the parts of `kohort produce` and `kohort consume`."""
