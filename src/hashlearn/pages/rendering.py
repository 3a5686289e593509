"""Pages from Jinja2 templates: the markup lies in the folder ``templates``, Python makes the plain data that it shows.

Every value is escaped, and a name that the data do not have is an error. The functions of `hashlearn.pages.formatting`
are filters. Templates of text (``.txt``) hold commands to copy; a page that shows them escapes them as a whole.
"""

from __future__ import annotations

from functools import cache
from inspect import isfunction
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hashlearn.pages import formatting


def render(template: str, **data: Any) -> str:
    """The text of a template with these data. Lone surrogates, which UTF-8 cannot hold, become question marks."""
    return _environment().get_template(template).render(data).encode("utf-8", "replace").decode("utf-8")


@cache
def _environment() -> Environment:
    loader = PackageLoader("hashlearn.pages")
    environment = Environment(
        loader=loader,
        autoescape=lambda name: name is None or not name.endswith(".txt"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: function for name, function in vars(formatting).items() if isfunction(function)}
    environment.filters["px"] = "{:.1f}".format
    environment.filters["thousands"] = "{:,}".format
    environment.globals |= {
        "ABSENT": formatting.ABSENT,
        "source": lambda name: Markup(loader.get_source(environment, name)[0]),  # a style sheet or a script of ours
    }
    return environment
