"""What the admin client is made of: one file a subject, over one way to reach the brokers."""
