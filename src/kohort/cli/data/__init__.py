"""Records in and out of files, as Arrow tables: what `kohort produce` and `kohort consume` are made of."""
