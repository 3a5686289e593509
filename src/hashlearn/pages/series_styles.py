"""One style for each method, the same in every figure: a color, a marker and a dash, so that color is never needed.

Colors are slots of the style sheet (Okabe and Ito's palette, darkened or lightened for contrast with the page), so
that dark mode and print change them in one place.
"""

from __future__ import annotations

from typing import NamedTuple

from hashlearn.pages.markup import Markup, element


class Look(NamedTuple):
    """The style of a line: color slot 1 … 8, name of a marker, dash pattern."""

    color: int
    marker: str
    dash: str | None = None

    @property
    def stroke(self) -> str:
        """The color as a variable of the style sheet."""
        return f"var(--s{self.color})"


_MARKERS = {
    "circle": "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z",
    "square": "M-3 -3h6v6h-6z",
    "up": "M0 -4L3.8 3h-7.6z",
    "down": "M0 4L3.8 -3h-7.6z",
    "diamond": "M0 -4.4L4.4 0L0 4.4L-4.4 0z",
    "plus": "M-1.1 -4h2.2v2.9h2.9v2.2h-2.9v2.9h-2.2v-2.9h-2.9v-2.2h2.9z",
    "bar": "M-1.6 -4.2h3.2v8.4h-3.2z",
    "flat": "M-4.2 -1.6h8.4v3.2h-8.4z",
}
_DASHED = "5 3"
_DOTTED = "1.5 3"

_LOOKS = {
    "hashlearn": Look(8, "flat"),
    "hashlearn tuned": Look(8, "bar", _DASHED),
    "SDR": Look(1, "circle"),
    "AL": Look(2, "square"),
    "SDR distance": Look(1, "diamond", _DASHED),
    "AL distance": Look(2, "plus", _DASHED),
    "NOPT": Look(3, "up"),
    "TSH": Look(3, "up"),
    "ITQ": Look(3, "up"),
    "NMF": Look(3, "up"),
    "GraphCut": Look(4, "down"),
    "FastHash": Look(4, "down"),
    "BA": Look(4, "down"),
    "ALM": Look(4, "down"),
    "KSH": Look(5, "diamond"),
    "SPH": Look(5, "diamond"),
    "BRE": Look(6, "plus", _DASHED),
    "KMH": Look(6, "bar", _DASHED),
    "ITQ-CCA": Look(7, "bar", _DOTTED),
    "SDR plain": Look(1, "flat", _DOTTED),
    "AL plain": Look(2, "bar", _DOTTED),
    "NOPT spread": Look(3, "diamond", _DASHED),
    "GraphCut spread": Look(4, "plus", _DASHED),
    "SDH": Look(5, "bar", _DASHED),
    "Sign": Look(6, "flat", _DASHED),
    "One-hot": Look(7, "down", _DASHED),
    "Ranking": Look(1, "circle"),
    "Ranking linear": Look(1, "diamond", _DASHED),
    "Ranking full": Look(1, "square", _DOTTED),
    "Sign cut": Look(6, "flat", _DOTTED),
    "ranking_linear": Look(1, "circle"),
    "ranking_mlp": Look(1, "diamond", _DASHED),
    "pca_sign": Look(7, "bar"),
    "itq": Look(3, "up"),
    "sign": Look(6, "flat", _DASHED),
    "two_step": Look(8, "bar", _DASHED),
    "FAISS PQ": Look(2, "square"),
    "FAISS ITQ": Look(3, "up", _DOTTED),
    "PQ": Look(2, "square"),
    "OPQ": Look(2, "square", _DASHED),
    "RQ": Look(4, "down"),
    "LSQ": Look(4, "down", _DASHED),
    "PRQ": Look(4, "down", _DOTTED),
    "RaBitQ 1 bit": Look(5, "diamond"),
    "RaBitQ 2 bits": Look(5, "bar", _DASHED),
    "RaBitQ 4 bits": Look(5, "bar", _DOTTED),
    "turbovec 2 bits": Look(7, "plus"),
    "turbovec 4 bits": Look(7, "plus", _DASHED),
    "turboquant-pro 2 bits": Look(8, "circle", _DASHED),
    "turboquant-pro 4 bits": Look(8, "circle", _DOTTED),
}


def look_of(method: str) -> Look:
    """The style of a method. A method that the paper does not have gets one derived from its name.

    >>> look_of("SDR"), look_of("SDR distance").color, look_of("mine") == look_of("mine")
    (Look(color=1, marker='circle', dash=None), 1, True)
    """
    if method in _LOOKS:
        return _LOOKS[method]
    place = sum(method.encode("utf-8", "replace"))
    return Look(3 + place % 6, list(_MARKERS)[place % len(_MARKERS)], (None, _DASHED, _DOTTED)[place % 3])


def marker(look: Look, x: float = 0.0, y: float = 0.0) -> Markup:
    """The method's marker at a point."""
    return element("path", d=_MARKERS[look.marker], transform=f"translate({x:.1f} {y:.1f})", fill=look.stroke)


def stroke(look: Look) -> dict[str, object]:
    """Attributes of the method's line."""
    return {"stroke": look.stroke, "stroke_dasharray": look.dash, "fill": "none"}


def swatch(look: Look) -> Markup:
    """A piece of the method's line with its marker, for legends and tables."""
    line = element("path", d="M1 6h22", stroke_width=2, **stroke(look))
    return element("svg", line, marker(look, 12, 6), viewBox="0 0 24 12", class_="swatch", aria_hidden="true")
