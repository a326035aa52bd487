"""Work queues beside a stream and a share consumer without Spark: `make bench-queues`."""
