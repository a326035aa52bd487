"""The server's side of SASL's mechanisms, without I/O: tokens in, tokens out, a name in the end."""
