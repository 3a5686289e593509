"""The project's own files agree: versions, extras, workflows, pre-commit, citation and the source archive."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import hashlearn

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
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


def test_source_archive_includes_every_tracked_file_that_tests_read() -> None:
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    always = {"pyproject.toml"}  # hatchling adds it
    generated = {".git", "PKG-INFO"}
    ignored = {line.strip("/ ") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines()}
    present = {path.name for path in ROOT.iterdir()} - always - generated
    here = {name for name in present if name not in ignored and not any(Path(name).match(line) for line in ignored)}
    missing = {name for name in here if not any(Path(name).match(pattern.strip("/")) for pattern in included)}
    assert not missing
