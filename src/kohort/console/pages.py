"""Renders pages: Jinja's templates, which escape all that is put into them."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kohort.console.links import dead_letters_link, group_link, placement_link, records_link, topic_link
from kohort.console.words import moment, number, visible
from kohort.plurals import several

__all__ = ["Pages"]


class Pages:
    """The templates.

    Args:
        cluster: how the cluster is called on all pages.
    """

    def __init__(self, cluster: str) -> None:
        self._environment = Environment(
            loader=PackageLoader("kohort.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.globals.update(
            cluster=cluster,
            group_link=group_link,
            placement_link=placement_link,
            topic_link=topic_link,
            records_link=records_link,
            dead_letters_link=dead_letters_link,
        )
        self._environment.filters.update(visible=visible, number=number, several=several, moment=moment)

    def render(self, name: str, **values: Any) -> str:
        """A page, as HTML."""
        return self._environment.get_template(f"{name}.html").render(**values)
