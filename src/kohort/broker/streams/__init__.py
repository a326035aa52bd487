"""What streams groups want of the broker around them: topics, configurations, and somebody to place their tasks."""
