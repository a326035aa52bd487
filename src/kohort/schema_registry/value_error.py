"""What is raised where a value, or its schema, isn't what it should be."""

from __future__ import annotations


class ValueFault(ValueError):  # noqa: N818 (it is the value's, not ours)
    """A value can't be read by a schema, or the schema is none: says why."""
