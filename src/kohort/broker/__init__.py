"""The broker: sockets, request handlers, logs and coordinators."""
