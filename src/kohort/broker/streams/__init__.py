"""What the broker provides to streams groups: topics, group configurations, and placement of tasks."""
