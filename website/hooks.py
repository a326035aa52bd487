"""What MkDocs calls while it builds the site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page as SitePage

from website import charts, links, pictures, reference
from website.page import Page

ROOT: Final = Path(__file__).parents[1]
_made: list[Page] = []


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generates the pages, and puts them into the navigation below "Reference"."""
    _made[:] = _made or reference.pages()  # once: `mkdocs serve` calls this again, with the same code
    assert config.nav is not None
    for entry in config.nav:
        if "Reference" in entry:
            entry["Reference"] = [*_entries(_made, ()), *entry["Reference"]]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages, and the documents that are beside docs/ in the repository."""
    for page in _made:
        files.append(File.generated(config, page.path, content=page.text))
    for source, path in links.MOVED.items():
        if source != "README.md":
            files.append(File.generated(config, path, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Has links hold on the site, too."""
    path = page.file.src_uri
    moved = {there: source for source, there in links.MOVED.items() if source != "README.md"}
    if path.startswith("reference/"):
        return markdown
    linked = links.on_site(markdown, path, moved.get(path, f"docs/{path}"))
    drawn = pictures.inlined(linked, (ROOT / "docs" / path).parent)
    return drawn.replace(charts.MARK, charts.markdown()) if charts.MARK in drawn else drawn


def _entries(pages: list[Page], section: tuple[str, ...]) -> Iterator[Any]:
    """The navigation of pages below a section, in their order."""
    seen: set[str] = set()
    for page in pages:
        if page.section == section:
            yield page.path
        elif page.section[: len(section)] == section and (name := page.section[len(section)]) not in seen:
            seen.add(name)
            yield {name: list(_entries(pages, (*section, name)))}
