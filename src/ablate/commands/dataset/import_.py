"""make a dataset of a collection in another layout, or of a folder of documents

DIR is a new folder: it is written whole, and read once before it gets its name, or not written at all. What is left
out or changed on the way is said, how often and where first. `dataset import FORMAT --help` tells what SOURCE must look
like.
"""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from ablate import importer
from ablate.actions import modules
from ablate.dataset.write import absent
from ablate.importer.delivery import deliver


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    formats = parser.add_subparsers(dest="format", required=True, metavar="FORMAT", title="formats")
    for module in modules(importer):
        if not hasattr(module, "read"):
            continue
        text = (module.__doc__ or "").strip()
        name = module.__name__.rpartition(".")[2]
        format = formats.add_parser(
            name,
            help=text.partition("\n")[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        format.add_argument("source", type=Path, metavar="SOURCE", help="what to import, as described above")
        format.add_argument("dir", type=Path, metavar="DIR", help="the new folder")
        format.add_argument("--json", action="store_true", help="counts, what was left out and warnings as JSON")
        if hasattr(module, "arguments"):
            module.arguments(format)
        format.set_defaults(read=module.read)


def main(args: argparse.Namespace) -> int:
    """Import one source.

    Raises:
        AblateError: the source cannot be read or is no dataset, or DIR is there already.

    """
    absent(args.dir)
    imported = args.read(args.source, args)
    found = deliver(imported, args.source, args.dir)
    report = imported.report
    if args.json:
        result = {"dir": str(args.dir), "counts": found.counts, "report": report.rows, "warnings": found.warnings}
        print(json.dumps(result | {"said": list(imported.said)}, ensure_ascii=False))
        return int(imported.failed)
    numbers = [f"{number} {name.replace('_', ' ')}" for name, number in found.counts.items() if number]
    print(f"{args.dir}: {', '.join(numbers)}")
    for title, sentences in (("left out or changed", report.sentences), ("warnings", found.warnings)):
        if sentences:
            print("\n".join((f"{title}:", *(f"  {sentence}" for sentence in sentences))))
    if imported.said:
        print("\n".join(imported.said))
    if imported.queries is not None:
        print(f"next: `{shlex.join(['python', '-m', 'ablate', 'dataset', 'validate', str(args.dir)])}`")
    return int(imported.failed)
