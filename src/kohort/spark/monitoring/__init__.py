"""What an instance tells of itself: events, metrics, the live line, a journal and what journals say together."""
