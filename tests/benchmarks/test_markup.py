"""HTML by construction: whatever text comes in, the parser gets the same text out and no element more."""

from __future__ import annotations

from html.parser import HTMLParser

from benchmarks.markup import Markup, element, join
from hypothesis import given
from hypothesis import strategies as st


class Reader(HTMLParser):
    """Collects elements, attributes and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


printable = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc"]))


@given(printable, printable)
def test_text_and_attributes_survive_and_stay_text(text: str, attribute: str) -> None:
    reader = Reader()
    reader.feed(element("p", text, title=attribute))
    reader.close()
    assert reader.tags == ["p"]
    assert reader.text == text
    assert reader.attributes == [("title", attribute)]


def test_markup_is_kept_and_nothing_is_left_out_silently() -> None:
    assert join([Markup("<b>x</b>"), None, False, 0, [1, ("<",)]]) == "<b>x</b>01&lt;"
    assert element("img", src="x", hidden=True, alt="") == '<img src="x" hidden alt="">'
