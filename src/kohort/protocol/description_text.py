"""The parts of a message's description as people read them."""

from __future__ import annotations

from collections.abc import Iterator

from kohort.protocol.describe import Description, Part

__all__ = ["label", "rows", "title"]


def title(description: Description) -> str:
    """The title of a message: "HeartbeatRequest v4 · API 12 · versions 0-4 · flexible"."""
    first, last = description.versions
    parts = [f"{description.name} v{description.version}"]
    if description.key >= 0:
        kind = "record type" if description.kind.value == "data" else "API"
        parts.append(f"{kind} {description.key}")
    parts.append(f"version {first}" if first == last else f"versions {first}-{last}")
    parts.append("flexible" if description.flexible else "not flexible")
    return " · ".join(parts)


def rows(parts: tuple[Part, ...], guide: str = "") -> Iterator[tuple[str, Part]]:
    """Each part with the branches that lead to it, depth first."""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        yield f"{guide}{'└─ ' if last else '├─ '}", part
        yield from rows(part.parts, f"{guide}{'   ' if last else '│  '}")


def label(part: Part) -> str:
    """The part's name; `?` marks what may be null, and a tagged field has its number."""
    tag = "" if part.tag is None else f" (tag {part.tag})"
    return f"{part.name}{'?' if part.nullable else ''}{tag}"
