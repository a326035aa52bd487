"""A message's description as a page: Markdown, HTML or JSON."""

from __future__ import annotations

import dataclasses
import html as escaping
import json
from typing import Any

from kohort.protocol.describe import Description, Part
from kohort.protocol.description_text import label, rows, title

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1d2433; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; border-bottom: 1px solid #e4e7ee; }
td.field { font-family: ui-monospace, monospace; white-space: pre; font-weight: 600; }
td.type, td.size { font-family: ui-monospace, monospace; color: #0b7285; white-space: nowrap; }
tr.part td { background: #f3f0ff; font-weight: 600; }
pre { background: #f6f7fa; padding: .8rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.guide { color: #b0b7c6; } .meaning { color: #55607a; }
@media (prefers-color-scheme: dark) {
  body { background: #14171f; color: #dde2ee; } th, td { border-color: #2a3040; }
  pre { background: #1c212c; } tr.part td { background: #262042; } td.type, td.size { color: #66d9e8; }
  .meaning { color: #9aa5bd; }
}
"""


def markdown(description: Description) -> str:
    lines = [f"# {title(description)}", "", description.doc, ""]
    lines += [f"- v{version}: {change}" for version, change in description.history]
    for name, parts in _sections(description):
        lines += ["", f"## {name}", "", "| Field | Type | Bytes | Meaning |", "| --- | --- | --- | --- |"]
        for guide, part in rows(parts):
            size = "" if part.size is None else str(part.size)
            indent = "&emsp;" * (len(guide) // 3 - 1)
            lines.append(f"| {indent}`{label(part)}` | {part.type} | {size} | {part.doc.replace('|', '&#124;')} |")
    lines += ["", "## Schema", "", "```", description.schema, "```"]
    lines += ["", "## Example", "", "```json", _pretty(description.example), "```"]
    lines += ["", "On the wire, without header:", "", "```", description.example_bytes.hex(), "```"]
    return "\n".join(lines)


def html(description: Description) -> str:
    e = escaping.escape
    body = [f"<h1>{e(title(description))}</h1>", f"<p>{e(description.doc)}</p>"]
    if description.history:
        items = (f"<li>v{version}: {e(change)}</li>" for version, change in description.history)
        body.append(f"<ul>{''.join(items)}</ul>")
    body.append("<table><thead><tr><th>Field</th><th>Type</th><th>Bytes</th><th>Meaning</th></tr></thead><tbody>")
    for name, parts in _sections(description):
        body.append(f'<tr class="part"><td colspan="4">{e(name)}</td></tr>')
        for guide, part in rows(parts):
            size = "" if part.size is None else str(part.size)
            body.append(
                f'<tr><td class="field"><span class="guide">{e(guide)}</span>{e(label(part))}</td>'
                f'<td class="type">{e(part.type)}</td><td class="size">{size}</td>'
                f'<td class="meaning">{e(part.doc)}</td></tr>'
            )
    body.append("</tbody></table>")
    body.append(f"<h2>Schema</h2><pre>{e(description.schema)}</pre>")
    body.append(f"<h2>Example</h2><pre>{e(_pretty(description.example))}</pre>")
    body.append(f"<p>On the wire, without header:</p><pre>{description.example_bytes.hex()}</pre>")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{e(title(description))}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>"
    )


def as_json(description: Description) -> str:
    plain: dict[str, Any] = {
        "name": description.name,
        "version": description.version,
        "kind": description.kind.value,
        "key": description.key,
        "versions": list(description.versions),
        "flexible": description.flexible,
        "doc": description.doc,
        "history": {str(version): change for version, change in description.history},
        "header": {"name": description.header, "fields": [_plain(part) for part in description.header_parts]},
        "fields": [_plain(part) for part in description.parts],
        "schema": description.schema,
        "example": description.example,
        "exampleHex": description.example_bytes.hex(),
    }
    return _pretty(plain)


def _plain(part: Part) -> dict[str, Any]:
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part) if field.name != "parts"}
    return fields | {"fields": [_plain(inner) for inner in part.parts]}


def _sections(description: Description) -> list[tuple[str, tuple[Part, ...]]]:
    own = (f"{description.name} v{description.version}", description.parts)
    return [(description.header, description.header_parts), own] if description.header else [own]


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
