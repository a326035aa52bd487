"""Who may do what: decisions, pure. Rules come from the metadata log, principals from connections."""
