"""say what a run needs and whether it is there: packages, models, workspace, store, disk"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from ablate.doctor import examine, lines


def main(argv: list[str]) -> int:
    """Print what was found, with the command for whatever is missing; 1 if something needed is."""
    parser = argparse.ArgumentParser(prog="python -m ablate doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    found = examine()
    ready = not any(finding.fatal for finding in found)
    if args.json:
        print(json.dumps({"ready": ready, "findings": [asdict(each) for each in found]}, ensure_ascii=False, indent=1))
    else:
        print("\n".join(lines(found)))
    return 0 if ready else 1
