"""The folder a user works in: from the current directory to the places of runs, MLflow's store and indexes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ablate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder that holds `experiments/` and `indexes/`; neither has to exist yet."""

    root: Path

    @property
    def experiments(self) -> Path:
        return self.root / "experiments"

    @property
    def indexes(self) -> Path:
        return self.root / "indexes"

    @property
    def runs(self) -> Path:
        """Where run directories are: `runs/<study>/<run>/`."""
        return self.experiments / "runs"

    def short(self, path: Path) -> str:
        """`path` as a message names it: from the workspace on, or whole if it lies elsewhere."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def workspace(start: Path | None = None, environment: Mapping[str, str] = os.environ) -> Workspace:
    """The nearest folder from `start` (the current one) upwards that holds `experiments/`, else `start`.

    `ABLATE_WORKSPACE` overrides the search. Nothing is created.

    Raises:
        ConfigError: `ABLATE_WORKSPACE` names something that is not a folder.

    """
    start = (start or Path.cwd()).absolute()
    named = environment.get("ABLATE_WORKSPACE")
    if not named:
        parents = (start, *start.parents)
        return Workspace(next((folder for folder in parents if (folder / "experiments").is_dir()), start))
    root = start / Path(named).expanduser()
    if not root.is_dir():
        raise ConfigError(f"ABLATE_WORKSPACE: found {named!r}, expected an existing folder; create it or unset it")
    return Workspace(root)
