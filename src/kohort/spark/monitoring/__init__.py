"""What can be seen of an instance: events, overview, lag, metrics, the live line, the journal and its analysis."""
