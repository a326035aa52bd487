"""The server: where sockets, logs and coordinators meet."""
