"""Record batches (v2): headers without touching records, and records as Arrow columns.

- `batch` reads, checks and patches batch headers; this is all that a broker needs.
- `columns` decodes batches into Arrow record batches and encodes Arrow columns into batches.
- `compression` knows Kafka's five codecs; `kernels` holds the compiled loops; `partitioner` is murmur2.

Only `columns` and `partitioner` load numba, which takes a moment; import them where they are used.
"""
