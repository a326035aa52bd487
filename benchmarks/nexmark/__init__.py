"""Nexmark: an online auction's persons, auctions and bids, and queries q0 to q22 over them."""
