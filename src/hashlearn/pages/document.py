"""The frame of every page: one HTML document with the style sheet in it."""

from __future__ import annotations

from importlib import resources

from hashlearn.pages.markup import Markup, element


def document(title: str, *body: Markup, head: tuple[Markup, ...] = ()) -> str:
    """A whole HTML document with the style sheet of all pages; ``head`` goes after it.

    Lone surrogates, which UTF-8 cannot hold, become question marks.
    """
    style = resources.files("hashlearn.pages").joinpath("style.css").read_text("utf-8")
    top = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(style)),
        head,
    )
    text = f"<!doctype html>\n{element('html', top, element('body', body), lang='en')}\n"
    return text.encode("utf-8", "replace").decode("utf-8")
