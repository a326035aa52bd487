"""Consumer groups (KIP-848) in virtual time: our coordinator, our client, and what goes wrong between."""
