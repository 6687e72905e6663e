"""list, verify or prune what is kept in indexes/: the vectors and scores that models have computed"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ablate import records
from ablate.errors import AblateError
from ablate.shelf import Shelf, shelves
from ablate.workspace import Workspace, workspace

SHOWN = 3
"""How many broken rows of a file are named."""

SAYS = {
    "list": "every file: its model, its rows and bytes, when it was last used and by how many recorded runs",
    "verify": "read every row and compare it with its checksum; what is broken is named, exit code 1",
    "prune": "remove what no recorded run used (what an interrupted run had begun, too) and what is broken; it is said "
    "first, with its size, and what is in use stays",
}


def main(argv: list[str]) -> int:
    """Do what the first word says: 1 if `verify` found something broken, or `prune` could not remove something."""
    args = arguments(argv)
    place = workspace()
    if args.action == "list":
        return listed(place, args.json)
    if args.action == "verify":
        return verified(place, args.json)
    return pruned(place, args.dry_run)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ablate index", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for name, text in SAYS.items():
        action = actions.add_parser(name, help=text, description=text)
        if name == "prune":
            action.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
        else:
            action.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(argv)


def listed(place: Workspace, as_json: bool) -> int:
    """Print every file."""
    used = uses(place)
    files = [about(shelf, used, place) for shelf in shelves(place.indexes)]
    if as_json:
        print(json.dumps(files, ensure_ascii=False, indent=1))
        return 0
    for file in files:
        last = datetime.fromisoformat(file["last_used"])
        print(file["file"])
        print(f"    {readable(file['revision']) or 'no database that can be read: `python -m ablate index verify`'}")
        print(
            f"    {file['model'] or 'a model without a name'}: {file['rows']:,} rows, {size(file['bytes'])}, last used "
            f"{last:%Y-%m-%d %H:%M} UTC, by {file['runs']} recorded runs"
        )
    print(f"{place.short(place.indexes)}: {len(files)} files, {size(sum(file['bytes'] for file in files))}")
    return 0


def about(shelf: Shelf, used: Counter[str], place: Workspace) -> dict[str, Any]:
    state = shelf.path.stat()
    return {
        "file": place.short(shelf.path),
        "kind": shelf.path.parent.name,
        "model": shelf.model,
        "revision": shelf.revision,
        "rows": shelf.glance([], "").rows,
        "bytes": state.st_size,
        "last_used": datetime.fromtimestamp(state.st_mtime, UTC).isoformat(timespec="seconds"),
        "runs": used[shelf.revision],
    }


def verified(place: Workspace, as_json: bool) -> int:
    """Print what is broken; 1 if something is."""
    found = shelves(place.indexes)
    total, problems = 0, []
    for shelf in found:
        name = place.short(shelf.path)
        try:
            rows, broken = shelf.check()
        except AblateError as error:
            problems.append({"file": name, "rows": [], "problem": str(error)})
            continue
        total += rows
        if broken:
            problems.append({"file": name, "rows": broken, "problem": told(name, rows, broken)})
    if as_json:
        state = {"files": len(found), "rows": total, "problems": problems}
        print(json.dumps(state, ensure_ascii=False, indent=1))
    else:
        for problem in problems:
            print(problem["problem"])
        ending = f"{len(problems)} broken" if problems else "every row matches its checksum"
        print(f"{place.short(place.indexes)}: {len(found)} files, {total:,} rows, {ending}")
    return int(bool(problems))


def told(name: str, rows: int, broken: Sequence[str]) -> str:
    named = ", ".join(broken[:SHOWN]) + (", ..." if len(broken) > SHOWN else "")
    return (
        f"{name}: found {len(broken)} of {rows:,} rows that do not match their checksum ({named}), expected none; they "
        "are computed again when they are asked for, `python -m ablate index prune` removes them now"
    )


@dataclass(frozen=True)
class Waste:
    """Something that can go: why, how many bytes, and how. `lock` is held by whoever uses it."""

    name: str
    why: str
    size: int
    lock: Path
    remove: Callable[[], None]


def pruned(place: Workspace, dry: bool) -> int:
    """Say what can go, and remove it; 1 if something that can go could not be removed."""
    making = being_made(place)
    if making:
        print("a run is being made, so what no recorded run used stays: it may be what that run uses")
    wastes = list(wasted(place, making))
    for waste in wastes:
        print(f"{waste.name}: {waste.why}, {size(waste.size)}")
    print(f"{len(wastes)} to remove, {size(sum(waste.size for waste in wastes))}", flush=True)
    if dry:
        return 0
    kept = [waste for waste in wastes if not removed(waste)]
    for waste in kept:
        print(f"{waste.name}: in use, so it stays")
    return int(bool(kept))


def wasted(place: Workspace, making: bool) -> Iterator[Waste]:
    """Everything under `indexes/` that can go; while a run is being made, only what is broken."""
    used = uses(place)
    for shelf in shelves(place.indexes):
        waste = partial(Waste, place.short(shelf.path), lock=lock_of(shelf.path))
        held, whole = shelf.path.stat().st_size, partial(removed_whole, shelf.path)
        try:
            _, broken = shelf.check()
        except AblateError:
            yield waste("broken", size=held, remove=whole)
            continue
        if not used[shelf.revision] and not making:
            yield waste("no recorded run used it", size=held, remove=whole)
        elif broken:
            yield waste(f"{len(broken)} broken rows", size=0, remove=partial(shelf.drop, broken))
    for end, why in {".broken": "set aside as broken", "-journal": "left behind", ".lock": "left behind"}.items():
        for path in sorted(place.indexes.glob(f"*/*.sqlite{end}")):
            if path.parent.is_symlink():
                continue
            file = path.with_name(path.name.removesuffix(end))
            if end == ".broken" or not file.exists():
                yield Waste(place.short(path), why, path.stat().st_size, lock_of(file), partial(removed_whole, path))


def removed_whole(path: Path) -> None:
    """Remove a file and, if it was a database, what an interrupted write left beside it."""
    path.unlink(missing_ok=True)
    Path(f"{path}-journal").unlink(missing_ok=True)


def removed(waste: Waste) -> bool:
    """Remove it, unless another process holds its lock or keeps it open."""
    with held(waste.lock) as free:
        if not free:
            return False
        try:
            waste.remove()
        except PermissionError:  # where open files cannot be removed
            return False
        if not waste.lock.with_suffix("").exists():
            with suppress(PermissionError):
                waste.lock.unlink(missing_ok=True)
        return True


def lock_of(path: Path) -> Path:
    return Path(f"{path}.lock")


@contextmanager
def held(lock: Path) -> Iterator[bool]:
    """True, and the lock is held meanwhile; False if another process holds it."""
    from filelock import FileLock, Timeout

    mine = FileLock(lock)
    try:
        mine.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        mine.release()


def uses(place: Workspace) -> Counter[str]:
    """By revision, how many recorded runs used a model."""
    return Counter(each for record in records.find(place) for each in set(record.facts.get("models", {}).values()))


def being_made(place: Workspace) -> bool:
    """Whether a run is being made at this moment, which may use what no record names yet."""
    for lock in place.runs.glob("*/.*.making"):
        with held(lock) as free:
            if not free:
                return True
    return False


def readable(revision: str) -> str:
    """A revision with its hashes cut to twelve digits."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{8,}\b", r"\1", revision)


def size(count: float) -> str:
    """Bytes as people read them: 532 bytes, 12.3 kB, 1.4 MB."""
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} GB"
