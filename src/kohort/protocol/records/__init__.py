"""Record batches (v2): batch headers, and records as Arrow columns.

- `batch` reads, validates and patches batch headers; this is all that a broker needs.
- `columns` decodes batches into Arrow record batches and encodes Arrow columns into batches.
- `rows` does the same one record at a time, for small batches and coordinators' logs.
- `compression` has Kafka's codecs, `kernels` the compiled loops, `partitioner` the hashes of keys.

Only `columns` and `partitioner` load numba, which is slow to import; import them where they are used.
"""
