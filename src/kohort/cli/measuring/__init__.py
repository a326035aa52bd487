"""What `kohort perf` measures."""
