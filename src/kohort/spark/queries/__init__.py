"""Interactive queries: an instance's stores over HTTP, read here or from the instance that has the partition."""
