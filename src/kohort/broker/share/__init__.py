"""What share groups (KIP-932) need of the server: sessions, and their partitions with records in flight."""
