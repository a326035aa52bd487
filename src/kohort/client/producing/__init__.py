"""What a producer is made of: batches, their order and sequences, transactions, and the tasks that send.

- `batch`, `delivery`: records on their way, and what becomes of each.
- `accumulator`, `partition_queue`: which batch goes next; order, retries and sequences (pure).
- `verdicts`: what each error code of a produce answer means.
- `transactions`: the states of a transactional producer, in a table (pure); `transaction_client` asks for it.
- `encoding`, `tables`, `partitioners`: records and Arrow columns to batches, keys to partitions.
- `sender`: one task a broker.
"""
