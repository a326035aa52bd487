"""The one model of a streams application, without I/O and clock: tasks and roles, topologies, and how far tasks are."""
