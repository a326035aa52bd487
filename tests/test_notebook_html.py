"""The pieces of HTML that notebooks show: whatever is in a name, it is text there."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from kohort.notebook_html import Html, PlainText, badge, html, lines, page, paragraph, table


class Parsed(HTMLParser):
    """Tags that were opened and not closed, and the text between tags."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text())
def test_any_text_stays_text(text: str) -> None:
    parsed = Parsed(
        page(text, text, table([text], [[text, 1]]), lines([text]), paragraph(text), state=badge(text))
        + PlainText(text)._repr_html_()
    )
    assert parsed.open == []
    assert set(parsed.tags) <= {"b", "br", "div", "pre", "span", "table", "tbody", "td", "th", "thead", "tr"}
    assert Parsed(html(text)).tags == []


def test_what_would_be_obeyed_is_shown() -> None:
    assert html("<script>alert('a')</script>") == "&lt;script&gt;alert(&#x27;a&#x27;)&lt;/script&gt;"
    assert html("a\x1b[31m\u202eb") == "a\\x1b[31m\\u202eb"


def test_numbers_are_written_for_people() -> None:
    assert [html(each) for each in (1234567, 0.25, None)] == ["1,234,567", "0.2", ""]
    assert table(["n"], []) == ""


def test_html_is_not_escaped_again_and_text_keeps_its_lines() -> None:
    assert html(Html("<b>a</b>")) == "<b>a</b>"
    text = PlainText("a <b>\n  b")
    assert text == "a <b>\n  b"
    assert ">a &lt;b&gt;\n  b</pre>" in text._repr_html_()
    assert html(text) == text._repr_html_()
