"""What processors do with the rows of an epoch, over Arrow tables: pure but for the state that they are handed."""
