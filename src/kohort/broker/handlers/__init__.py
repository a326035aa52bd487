"""What the broker does for each API, one file an API, named as in `kohort.protocol.messages`."""
