"""What the README says can be typed, can be typed; what it shows as a file or a class, works."""

import json
import re
import shlex
from pathlib import Path

import pytest
from cli import ablate, put, workshop

from ablate import __main__
from ablate.commands import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def lines(start):
    """The commands of the README that begin so, without their comments, as lists of words."""
    text = "\n".join(blocks("bash")) + "\n" + "\n".join(re.findall(r"`(python [^`]+)`", README))
    found = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith(start)]
    assert found
    return found


def overrides():
    commands = [words[words.index("ablate") + 1 :] for words in lines("python -m ablate")]
    return [words for words in commands if not words or "=" in words[-1]]


@pytest.mark.parametrize("words", overrides(), ids=" ".join)
def test_every_command_with_overrides_composes_and_proves(words, tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    put(tmp_path, {"my_configs/reranker/newest.yaml": "_target_: ablate.reranker.Keep\n"})
    args = run.get_args_parser().parse_intermixed_args([run.as_typed(word) for word in words])
    assert run.proved(args)


def test_every_command_word_is_a_command():
    commands = [words[words.index("ablate") + 1 :] for words in lines("python -m ablate")]
    named = {words[0] for words in commands if words and not re.match(r"[+-]|.*=", words[0])}
    assert named <= set(__main__.commands())


def test_the_two_commands_are_the_set_up_script():
    first, second = lines("python3 ")
    assert first[1] == second[1] == "scripts/python.py"
    assert (ROOT / first[1]).exists()
    assert f"$python {shlex.join(second[2:])}" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_variant_shown_is_a_variant(tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    (shown,) = blocks("yaml")
    put(tmp_path, {"conf/variant/shown.yaml": shown})
    args = run.get_args_parser().parse_args(["--config-dir", "conf", "+variant=shown"])
    (plan,) = run.proved(args)
    assert plan.component == "reranker"


def test_the_component_shown_works(tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    (code,) = blocks("python")
    put(tmp_path, {"readme_module.py": code})
    put(tmp_path, {"conf/reranker/newest.yaml": "_target_: readme_module.Newest\nfield: updated\n"})
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["--config-dir", "conf", "embedder=hash", "dataset=sample", "tracking=off", "latency=off"]
    assert __main__.main([*words, "reranker=newest"]) == 0


def test_the_files_shown_are_read(tmp_path):
    from ablate.dataset import Folder

    (shown,) = (block for block in blocks("text") if block.startswith("corpus.jsonl"))
    rows = {name: json.loads(row) for name, row in (line.split(maxsplit=1) for line in shown.splitlines())}
    corpus, truth = rows["corpus.jsonl"], rows["ground_truth.jsonl"]
    corpus["text"] = "The money comes back within 14 days of the request."
    rows["queries.jsonl"]["principals"] = ["group:support"]
    truth["alternatives"] = truth["alternatives"][:1]
    put(tmp_path, {name: json.dumps(row, ensure_ascii=False) + "\n" for name, row in rows.items()})
    dataset = Folder(str(tmp_path), "test", "none", 1, "nobody", True, None).read()
    assert len(dataset.truths["q1"].alternatives) == 1


@pytest.mark.slow
def test_the_table_of_results_is_what_the_demo_gives(tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    rows = dict(re.findall(r"^\| (\w+) \| (0\.\d{3}(?: [+-]\d\.\d{3})?) \|", README, re.MULTILINE))
    minutes = ("reranker", "late_interaction", "chunking", "embedder")  # what has to read everything anew
    names = [name for name in rows if name != "baseline" and not name.startswith(minutes)]
    assert len(names) >= 4
    said = ablate("-m", f"+variant={','.join(names)}", "latency=off", "tracking=off")
    assert said.code == 0, said.err
    assert f"-  baseline: sufficient {rows['baseline']}, " in said.out
    for name in names:
        mean, difference = rows[name].split()
        assert re.search(rf"^{name} +{mean} {re.escape(difference)} ", said.out, re.MULTILINE), name
