"""SVG by construction: text is escaped unless it is `Markup` already, so no label or name can break a page."""

from __future__ import annotations

import html
from collections.abc import Iterable

_VOID = frozenset({"br", "img", "input", "meta"})


class Markup(str):
    """Text that is already HTML: made by `element` or `join`, or a whole style sheet, script or JSON of a page."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """An element with escaped children and attributes.

    A trailing underscore of an attribute is dropped, and the others become hyphens (``class_``, ``aria_label``). None
    and False omit an attribute or a child. Lists and generators of children are inserted one by one.

    >>> element("td", "a < b", class_="best", title=None)
    '<td class="best">a &lt; b</td>'
    >>> element("p", element("b", 1), " of ", 2)
    '<p><b>1</b> of 2</p>'
    """
    opening = "".join([tag, *(_attribute(name, value) for name, value in attributes.items())])
    if tag in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{tag}>")


def join(children: Iterable[object]) -> Markup:
    """The children one after another, escaped unless they are `Markup`.

    >>> join(["<", Markup("<br>"), None, [1, 2]])
    '&lt;<br>12'
    """
    return Markup("".join(_child(child) for child in children))


def _child(child: object) -> str:
    if child is None or child is False:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, Iterable) and not isinstance(child, str):
        return join(child)
    return html.escape(str(child))


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    shown = name.removesuffix("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{html.escape(str(value))}"'
