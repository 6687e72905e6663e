"""Where the configs are and what can be chosen from them, read from the files so that no list can drift."""

from __future__ import annotations

from pathlib import Path


def conf() -> Path:
    """The shipped configs: beside the package in a wheel, at the top of a checkout."""
    inside = Path(__file__).parent / "conf"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "conf"


def options() -> dict[str, list[str]]:
    """Every group and the names of its options, both sorted."""
    groups = sorted(path for path in conf().iterdir() if path.is_dir())
    return {group.name: sorted(path.stem for path in group.glob("*.yaml")) for group in groups}


def names() -> list[str]:
    """What a command line can name: groups, `group/option`, and the dotted keys of every option and of the baseline."""
    import yaml

    found = []
    for path in sorted(conf().rglob("*.yaml")):
        group = path.parent.relative_to(conf()).as_posix().removeprefix(".")
        keys = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        found += [group, f"{group}/{path.stem}"] if group else []
        found += [f"{group}.{key}".lstrip(".") for key in keys]
    return list(dict.fromkeys(found))


def comment(path: Path) -> str:
    """The first comment of a config that is not Hydra's own header: for a variant, the question it asks."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line.lstrip("# ") for line in lines if line.startswith("#") and "@package" not in line]
    return comments[0] if comments else ""
