"""What a producer is made of: batches, their order and sequences, transactions, and the tasks that send.

- `intake` takes records; `partitioners`: keys to partitions; `tables`, `encoding`: columns and records to batches.
- `batch`, `delivery`: a batch of records, and the outcome of each.
- `accumulator`, `partition_queue`: which batch is sent next; order, retries and sequences (pure).
- `sender`: one task for each broker; `produce_request`.
- `batch_completer` completes batches by their responses; `produce_errors`: what each error code means.
- `transaction_manager`: the states of a transactional producer, in a table (pure); `transaction_client` sends its
  requests; `coordinator_errors`: what each error code of a coordinator means.
"""
