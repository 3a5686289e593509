"""Sphinx settings of the site. ``make docs`` builds it from the Markdown files of this folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for `docstrings`

import docstrings  # noqa: E402

import hashlearn  # noqa: E402

os.environ.setdefault("TQDM_DISABLE", "1")

project = "hashlearn"
author = "the hashlearn developers"
copyright = author
release = hashlearn.__version__
version = release

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "docstrings",
]
exclude_patterns = [
    "_build",
    "_templates",
    "gallery/*.py",
    "gallery/*.ipynb",
    "**/sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = False  # annotations name types of NumPy and scikit-learn, whose pages are not fetched
show_warning_types = True
smartquotes_action = "D"  # dashes only: quoted names are code
highlight_options = {"python": {"stripnl": True}}  # without the blank line that ends a doctest
# A function in autosummary_context cannot be stored between builds; it does no harm.
suppress_warnings = ["config.cache"]

# Markdown: anchors as on GitHub, so that links between pages work in both places.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# The API: one page for each public package, listing its ``__all__``, and one for each name.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False
napoleon_use_param = False
napoleon_custom_sections = ["Deviations", ("Attributes", "params_style")]

# The gallery: scripts run while the site is built, in the order of their file names.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "thumbnail_size": (480, 336),
    "abort_on_example_error": True,
}

html_title = "hashlearn"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_context = {"default_mode": "auto"}  # light or dark as the system; without it the theme logs an error
html_theme_options = {
    "logo": {"text": "hashlearn"},
    "icon_links": [
        {"name": "GitHub", "url": "https://github.com/hashlearn/hashlearn", "icon": "fa-brands fa-github"},
    ],
    "header_links_before_dropdown": 6,
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher", "navbar-icon-links"],
    "navigation_depth": 3,
    "show_toc_level": 2,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "concepts": []}

autosummary_context = {"public_names": docstrings.public_names}
