"""The parts of the admin client: one file for each subject, over `request_router` and `node_lookup`."""
