"""The project's own files agree: versions, extras, workflows, pre-commit, citation and the source archive."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import hashlearn
from tests import smoke

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
NOT_FOR_USERS = {"all", "bench", "docs", "dev"}


def read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


def locked(package: str) -> set[str]:
    """Versions of a package in the lock: one, or one for each range of Python versions."""
    text = (ROOT / "requirements" / "dev.lock").read_text("utf-8")
    return set(re.findall(rf"^{re.escape(package)}==([^\s;]+)", text, re.MULTILINE))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def listed(value: str) -> list[list[str]]:
    """The JSON lists in an expression such as ``fromJSON(… && '["a"]' || '["a", "b"]')``."""
    return [json.loads(text) for text in re.findall(r"'(\[.*?\])'", value)]


def test_version_is_the_same_everywhere() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert PROJECT["version"] == hashlearn.__version__ == citation["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]


def test_citation_names_the_paper_and_its_authors_as_the_readme_does() -> None:
    (paper,) = read(ROOT / "CITATION.cff")["references"]
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert paper["title"] in readme
    for author in paper["authors"]:
        assert f"{author['given-names']} {author['family-names']}" in readme


def test_the_extra_all_holds_every_extra_for_users() -> None:
    extras = PROJECT["optional-dependencies"]
    (requirement,) = extras["all"]
    names = re.fullmatch(r"hashlearn\[([a-z,-]+)\]", requirement)
    assert names
    assert set(names[1].split(",")) == set(extras) - NOT_FOR_USERS


def test_python_versions_agree() -> None:
    classified = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert classified == [f"3.{minor}" for minor in range(11, 15)]
    assert oldest == classified[0] == PYPROJECT["tool"]["mypy"]["python_version"]
    matrix = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    for_requests, for_main = listed(matrix["python-version"])
    assert for_main == classified
    assert for_requests == [classified[0], classified[-1]]
    systems = {name.partition("-")[0] for names in listed(matrix["os"]) for name in names}
    assert systems == {"ubuntu", "macos"}
    for path in WORKFLOWS:
        for step in steps(read(path)):
            version = step.get("with", {}).get("python-version", classified[0])
            assert version in classified or "matrix" in version


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_runs_targets_that_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    commands = [step["run"] for step in steps(read(path)) if step.get("run", "").startswith("make ")]
    named = {word for command in commands for word in command.split()[1:] if "=" not in word}
    assert named
    assert named <= targets


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_has_pinned_actions_and_few_permissions(path: Path) -> None:
    workflow = read(path)
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", action), action
    assert workflow["permissions"] in ({}, {"contents": "read"})
    writing = {
        (name, permission)
        for name, job in workflow["jobs"].items()
        for permission, level in job.get("permissions", {}).items()
        if level == "write"
    }
    assert writing == ({("publish", "id-token")} if path.stem == "release" else set())
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_release_tries_the_wheel_before_it_is_published() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "release.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key `on` as true
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    order = [step.get("run", step.get("uses", "")) for step in build["steps"]]
    smoked = next(i for i, text in enumerate(order) if "smoke" in text.split())
    assert smoked < next(i for i, text in enumerate(order) if text.startswith("actions/upload-artifact"))
    assert publish["needs"] == "build"
    assert publish["environment"] == "pypi"


def test_the_tag_check_of_the_release_accepts_this_version_only() -> None:
    build = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["build"]
    (command,) = [step["run"] for step in build["steps"] if "GITHUB_REF_NAME" in step.get("run", "")]

    def exit_code(tag: str) -> int:
        environment = {"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
        return subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True).returncode

    assert exit_code(f"v{PROJECT['version']}") == 0
    assert exit_code("v99.0") == 1
    assert exit_code("v.*") == 1


def test_pre_commit_has_the_versions_of_the_lock() -> None:
    repositories = {Path(entry["repo"]).name: entry for entry in read(ROOT / ".pre-commit-config.yaml")["repos"]}
    assert {repositories["ruff-pre-commit"]["rev"]} == {f"v{version}" for version in locked("ruff")}
    assert {repositories["mirrors-mypy"]["rev"]} == {f"v{version}" for version in locked("mypy")}
    pins = [
        pin
        for entry in repositories.values()
        for hook in entry["hooks"]
        for pin in hook.get("additional_dependencies", [])
    ]
    assert {pin.partition("==")[0] for pin in pins} >= {"import-linter", "numpy"}
    for pin in pins:
        package, _, version = pin.partition("==")
        assert version in locked(package), pin


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_form_is_complete(path: Path) -> None:
    form = read(path)
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field["validations"]["required"] for field in fields)


def test_there_are_forms_for_bugs_wrong_numbers_and_questions() -> None:
    assert {path.stem for path in FORMS} == {"bug", "wrong-number", "question-or-feature"}


def test_source_archive_includes_every_tracked_file_that_tests_read() -> None:
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    always = {"pyproject.toml"}  # hatchling adds it
    generated = {".git", "PKG-INFO"}
    ignored = {line.strip("/ ") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines()}
    present = {path.name for path in ROOT.iterdir()} - always - generated
    here = {name for name in present if name not in ignored and not any(Path(name).match(line) for line in ignored)}
    missing = {name for name in here if not any(Path(name).match(pattern.strip("/")) for pattern in included)}
    assert not missing


def test_coverage_leaves_out_compiled_functions_and_nothing_else() -> None:
    (pattern,) = PYPROJECT["tool"]["coverage"]["report"]["exclude_also"]
    lines = [line for path in (ROOT / "src").rglob("*.py") for line in path.read_text("utf-8").splitlines()]
    excluded = {line for line in lines if re.search(pattern, line)}
    assert excluded
    assert all(line.startswith(("@njit", "@intrinsic")) for line in excluded)
    assert not [line for line in lines if re.match(r"\s*@(numba\.)?n?jit", line) and line not in excluded]


def test_smoke_checks_pass_here(tmp_path: Path) -> None:
    smoke.check_codes(tmp_path)
    smoke.check_solver()


def test_smoke_stops_where_something_is_wrong() -> None:
    with pytest.raises(SystemExit, match="smoke: the reason"):
        smoke.check(False, "the reason")
