#!/usr/bin/env python3
"""How long `compare` takes over a study of 1,000 runs: from records on disk, and from an MLflow server on PostgreSQL.

    python scripts/bench_compare.py [RUNS]

Two real runs of the demo are made, without models; the others are copies of the second whose values are changed by lot.
The server's part needs PostgreSQL (see scripts/server.py), and is left out where it is missing.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ablate import records
from ablate.archive import compact

sys.path.insert(0, str(Path(__file__).parent))
MEASURES = ("context/sufficient", "context/coverage", "retrieval/coverage_at_640_tokens")
CONFIG = {"k": 5, "depth": 50, "budget": 640}
VARIANT = ("retriever=bm25", "+variant=metadata_filters", "latency=off", "tracking=off")


def ablate(place: Path, *words: str) -> tuple[float, str]:
    """Seconds of a whole process, and what it printed."""
    began = time.perf_counter()
    environment = {**os.environ, "ABLATE_WORKSPACE": str(place)}
    done = subprocess.run(
        [sys.executable, "-m", "ablate", *words], env=environment, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - began, done.stdout


def multiplied(place: Path, runs: int) -> str:
    """So many runs of one study, the baseline among them; its name."""
    ablate(place, *VARIANT)
    (run,) = place.glob("experiments/runs/*/metadata_filters-*")
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    rows = [json.loads(line) for line in (run / "queries.jsonl").open(encoding="utf-8")]
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    for number in range(runs - 2):
        copy = run.parent / f"variant-{number:04}"
        shutil.copytree(run, copy)
        changed(copy, facts, rows, metrics, number)
    return run.parent.name


def changed(copy: Path, facts: dict, rows: list, metrics: dict, number: int) -> None:
    """One copy under a name and a config of its own, some of its queries better or worse."""
    chance = random.Random(number)
    mine = {"run": copy.name, "variant": f"variant_{number:04}"}
    prints = {**facts["fingerprints"], "config": f"{number}"}
    (copy / "run.json").write_text(json.dumps({**facts, **mine, "fingerprints": prints}, ensure_ascii=False))
    sums = {measure: [] for measure in MEASURES}
    mine_rows = []
    with (copy / "queries.jsonl").open("w", encoding="utf-8") as file:
        for row in rows:
            flip = chance.random() < 0.15
            known = {measure: value for measure in MEASURES if (value := row["values"][measure]) is not None}
            values = {**row["values"], **{measure: 1.0 - value for measure, value in known.items() if flip}}
            mine_rows.append({**row, "values": values})
            for measure, found in sums.items():
                found += [values[measure]] if values[measure] is not None else []
            file.write(json.dumps(mine_rows[-1], ensure_ascii=False) + "\n")
    for measure, found in sums.items():
        metrics["measures"][measure]["mean"] = sum(found) / len(found)
    (copy / "metrics.json").write_text(json.dumps(metrics, ensure_ascii=False))
    records.note(copy, records.COMPACT, compact(metrics, mine_rows, CONFIG))


def from_server(place: Path, study: str, runs: int) -> None:
    """The same number of runs in a server, each with the metrics and tags of a real one."""
    from server import Missing, running

    try:
        with running() as server:
            os.environ["MLFLOW_TRACKING_URI"] = server.uri
            real = place / "real"
            (real / "experiments").mkdir(parents=True)
            ablate(real, *VARIANT[:-1])
            fill(server.database, study, runs)
            seconds, said = ablate(real, "compare", "--uri", server.uri, "--json")
            assert len(json.loads(said)["runs"]) == runs
            print(f"from an MLflow server on PostgreSQL: {runs} runs in {seconds:.2f} s")
    except Missing as missing:
        print(f"from an MLflow server: left out ({missing})")


KNOWN = """
    SELECT run_uuid FROM tags JOIN runs USING (run_uuid) JOIN experiments USING (experiment_id)
    WHERE key = 'ablate.component' AND experiments.name = :study
"""


def fill(address: str, study: str, runs: int) -> None:
    """Copies of the one variant's run, straight in the database, until the study has so many runs."""
    from sqlalchemy import create_engine, text

    engine = create_engine(address)
    with engine.begin() as database:
        known = database.execute(text(KNOWN), {"study": study}).scalar_one()
        own = {
            ("runs", "run_uuid"): "lpad(n::text, 32, '0')",
            ("tags", "value"): "CASE key WHEN 'ablate.run' THEN value || '-' || n ELSE value END",
        }
        for table in ("runs", "tags", "latest_metrics", "params"):
            columns = [row[0] for row in database.execute(
                text("SELECT column_name FROM information_schema.columns WHERE table_name = :t"), {"t": table}
            )]  # fmt: skip
            own |= {(table, "run_uuid"): own["runs", "run_uuid"]}
            chosen = ", ".join(own.get((table, name), f'"{name}"') for name in columns)
            names = ", ".join(f'"{name}"' for name in columns)
            database.execute(
                text(
                    f"INSERT INTO {table} ({names}) SELECT {chosen} FROM {table}, generate_series(1, :many) n "
                    "WHERE run_uuid = :known"
                ),
                {"many": runs - 2, "known": known},
            )
        database.execute(text("ANALYZE"))  # as the database does by itself within a minute
    engine.dispose()


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        study = multiplied(place, runs)
        for form in ((), ("--json",)):
            seconds, _ = ablate(place, "compare", "--study", study, *form)
            print(f"from records on disk: {runs} runs in {seconds:.2f} s {' '.join(form)}")
        from_server(place, study, runs)


if __name__ == "__main__":
    main()
