"""The reference of what Python programs import: a page a package, which mkdocstrings fills from docstrings."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from website.page import Page, slug

SOURCE: Final = Path(__file__).parents[1] / "src"

PACKAGES: Final = {
    "kohort.client": "Consumers, producers, members and admin",
    "kohort.spark": "Streams applications",
    "kohort.spark.testing": "Tests of streams applications without a broker",
    "kohort.testing": "Brokers for tests",
    "kohort.coordinator.placement": "Who gets which task",
    "kohort.protocol.messages": "The index of messages",
    "kohort.protocol.stored": "The records of coordinators' logs",
}
"""Public packages, and what is in them."""


def exported(package: str) -> list[str]:
    """The names in a package's `__all__`, without importing it."""
    tree = ast.parse((SOURCE / package.replace(".", "/") / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{package} has no __all__")


def pages() -> list[Page]:
    """A page for each package, with what it exports."""
    made = []
    for package, title in PACKAGES.items():
        names = "".join(f"\n          - {name}" for name in exported(package))
        text = f"# {package}\n\n{title}.\n\n::: {package}\n    options:\n      show_root_heading: false\n"
        text += f"      show_root_toc_entry: false\n      members:{names}\n"
        made.append(Page(f"reference/python/{slug(package)}.md", ("Python",), text))
    return made
