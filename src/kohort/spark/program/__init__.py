"""A streams application as its author writes it, and what it is compiled to."""
