"""The frame of every page: one HTML document with the style sheet in it."""

from __future__ import annotations

from importlib import resources

from hashlearn.pages.markup import Markup, element


def document(title: str, *body: Markup) -> str:
    """A whole HTML document with the style sheet of all pages."""
    style = resources.files("hashlearn.pages").joinpath("style.css").read_text("utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(style)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', body), lang='en')}\n"
