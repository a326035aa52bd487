"""What handlers of the admin APIs have in common."""
