"""Consumer and share groups: how soon members are settled, how quickly they share, what the broker keeps for it."""
