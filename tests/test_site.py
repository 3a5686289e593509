"""The site without Sphinx: every page has a place in the navigation, every public name in the API, and conf.py runs."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import hashlearn

DOCS = Path(__file__).parents[1] / "docs"
# Parts of a public package, whose names that package offers, or that are described where they are used.
PARTS = {
    "hashlearn.bqp.proof",
    "hashlearn.bqp.modeling",
    "hashlearn.bqp.rows",
    "hashlearn.bqp.sdr",
    "hashlearn.hashers.ranking",
    "hashlearn.search.stores.postgres",
}  # their names are public in the package above
TOCTREE = re.compile(r"^:::\{toctree\}\n(.*?)^:::", re.MULTILINE | re.DOTALL)


def loaded(name: str) -> ModuleType:
    """A module of the folder docs."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def docstrings() -> ModuleType:
    return loaded("docstrings")


def entries() -> list[str]:
    """Every document that a toctree names, patterns resolved."""
    named: list[str] = []
    for path in DOCS.rglob("*.md"):
        for tree in TOCTREE.findall(path.read_text("utf-8")):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            for line in lines:
                target = re.sub(r".*<(.+)>", r"\1", line)
                found = sorted(path.parent.glob(f"{target}.md"))
                named += [str(page.relative_to(DOCS).with_suffix("")) for page in found] or [target]
    return named


def test_every_page_is_in_one_toctree() -> None:
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md") if "_build" not in path.parts}
    named = entries()
    assert {*named} == (pages | {"gallery/index"}) - {"index"}
    assert len(named) == len({*named})


def test_every_public_package_is_in_the_api(docstrings: ModuleType) -> None:
    listed = docstrings.listed_packages()
    packages = {
        info.name
        for info in pkgutil.walk_packages(hashlearn.__path__, "hashlearn.")
        if info.ispkg and "__all__" in vars(import_module(info.name))
    }
    assert {*listed} == packages - PARTS
    assert len(listed) == len({*listed})
    for package in listed:
        assert docstrings.public_names(package), package


def test_every_name_of_the_top_package_is_in_the_api(docstrings: ModuleType) -> None:
    text = docstrings.API.read_text("utf-8")
    for name in hashlearn.__all__:
        value = getattr(hashlearn, name)
        if isinstance(value, ModuleType):
            assert value.__name__ in docstrings.listed_packages()
        elif not name.startswith("__"):
            target = re.search(rf"`hashlearn\.{name} <(hashlearn\.\w+)\.{name}>`", text)
            assert target, name
            assert getattr(import_module(target[1]), name) is value


def test_every_public_class_and_function_has_a_docstring(docstrings: ModuleType) -> None:
    for package in docstrings.listed_packages():
        for name in docstrings.public_names(package):
            value = getattr(import_module(package), name)
            if callable(value):
                assert value.__doc__, f"{package}.{name}"
            else:
                assert docstrings.contents(value), f"{package}.{name}"


def test_settings_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.syspath_prepend(str(DOCS))
    settings = loaded("conf")
    assert settings.release == hashlearn.__version__
    for name in (*settings.html_css_files, Path(settings.html_favicon).name):
        assert (DOCS / "_static" / name).is_file()
    assert (DOCS / settings.sphinx_gallery_conf["examples_dirs"]).resolve().parent.name == "examples"
