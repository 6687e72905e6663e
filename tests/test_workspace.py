"""Which folder is the workspace."""

from __future__ import annotations

import pytest

from ablate.errors import ConfigError
from ablate.workspace import workspace


def test_the_nearest_parent_with_experiments_is_the_workspace(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "отчёты" / "experiments").mkdir(parents=True)
    deep = tmp_path / "отчёты" / "a" / "b"
    deep.mkdir(parents=True)
    assert workspace(deep, {}).root == tmp_path / "отчёты"
    assert workspace(tmp_path / "experiments", {}).root == tmp_path


def test_a_file_called_experiments_is_not_a_workspace(tmp_path):
    (tmp_path / "experiments").mkdir()
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "experiments").write_text("")
    assert workspace(inner, {}).root == tmp_path


def test_without_experiments_the_current_folder_is_the_workspace_and_nothing_is_created(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = workspace(environment={})
    assert found.root == tmp_path
    assert found.runs == tmp_path / "experiments" / "runs"
    assert list(tmp_path.iterdir()) == []


def test_the_environment_overrides_the_search(tmp_path):
    (tmp_path / "experiments").mkdir()
    other = tmp_path / "другой"
    other.mkdir()
    assert workspace(tmp_path, {"ABLATE_WORKSPACE": str(other)}).root == other
    assert workspace(tmp_path, {"ABLATE_WORKSPACE": "другой"}).root == other
    assert workspace(tmp_path, {"ABLATE_WORKSPACE": ""}).root == tmp_path


def test_an_override_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="ABLATE_WORKSPACE: found '/no/such', expected an existing folder"):
        workspace(tmp_path, {"ABLATE_WORKSPACE": "/no/such"})


def test_paths_are_shown_from_the_workspace_on(tmp_path):
    found = workspace(tmp_path, {})
    assert found.short(found.runs) == "experiments/runs"
    assert found.short(tmp_path.parent) == str(tmp_path.parent)
