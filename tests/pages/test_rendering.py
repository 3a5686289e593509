"""Templates: whatever text comes in, the parser gets the same text out and no element more; nothing is left out."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from hashlearn.pages.rendering import render

DATA: dict[str, Any] = {
    "title": "T",
    "count": 3,
    "n_bits": 8,
    "classes": None,
    "shown": {},
    "max_bytes": 1,
    "most_letters": 160,
    "data": "",
}


class Reader(HTMLParser):
    """Collects elements, and the text of headings and options."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags:
            self.texts[self.tags[-1]] = self.texts.get(self.tags[-1], "") + data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


printable = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc"]), min_size=1)


@given(printable, printable)
def test_text_survives_and_stays_text(title: str, name: str) -> None:
    plain = read(render("explorer.html", **DATA | {"classes": ["a"]}))
    found = read(render("explorer.html", **DATA | {"title": title, "classes": [name]}))
    assert found.tags == plain.tags
    assert found.texts["h1"].rstrip("\n ") == title.rstrip("\n ")
    assert found.texts["option"].startswith("all classes" + name)


def test_a_name_that_the_data_do_not_have_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'title' is undefined"):
        render("explorer.html", **{name: value for name, value in DATA.items() if name != "title"})


def test_lone_surrogates_become_question_marks() -> None:
    assert "<h1>a ? b</h1>" in render("explorer.html", **DATA | {"title": "a \ud800 b"})
