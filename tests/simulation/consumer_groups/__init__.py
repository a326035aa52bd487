"""Consumer groups (KIP-848) in virtual time: our coordinator, our client's state machine, and what goes wrong between."""
