"""Every option of every component and every variant, found by themselves: each combination runs, or is refused."""

import itertools
from dataclasses import replace

import cli
import pytest
from hydra import compose, initialize_config_dir

from ablate.audit import Audit
from ablate.conf import conf, options
from ablate.config import STAGES, resolve, settings
from ablate.errors import AblateError
from ablate.evaluate import audited
from ablate.pipeline import Line, ready
from ablate.store import stored

OPTIONS = {stage: options()[stage] for stage in STAGES}
UNGUARDED = "off"
"""The one access that is there to be caught."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Each option of each stage as a component of its own, with its shipped settings; model work is kept."""
    folder = tmp_path_factory.mktemp("индексы")
    found = {stage: {} for stage in STAGES}
    with initialize_config_dir(str(conf()), version_base="1.3"):
        for stage, names in OPTIONS.items():
            for name in names:
                chosen = settings(resolve(compose("config", ["dataset=sample", f"{stage}={name}"])))
                component = getattr(chosen, stage)
                found[stage][name] = stored(component, folder) if stage in ("embedder", "reranker") else component
    return chosen, found


@pytest.fixture(scope="module")
def sample(parts):
    """The sample with three of its questions: one with a filter, one in Russian, one more."""
    dataset = parts[0].dataset.read()
    filtered = [query for query in dataset.queries if query.filter][:1]
    russian = [query for query in dataset.queries if not query.text.isascii()][:1]
    chosen = dict.fromkeys(query.id for query in (*filtered, *russian, *dataset.queries[:1]))
    return replace(dataset, queries=tuple(query for query in dataset.queries if query.id in chosen))


def together(parts, names):
    return Line(**{stage: parts[1][stage][name] for stage, name in names.items()})


def run(parts, dataset, audit: Audit, names):
    """Every question down the line, once; what must hold whatever the components are."""
    chosen = parts[0]
    line = ready(together(parts, names), dataset, chosen.tokens, chosen.k, chosen.depth, chosen.budget)
    for query in dataset.queries:
        trace = line(query)
        denied = set() if names["access"] == UNGUARDED else audit.denied(query.principals)
        assert not denied & {hit.chunk.document.id for hit in trace.ranked}, query.id
        assert not denied & {passage.document.id for passage in trace.context.passages}, query.id
        found = [hit.chunk for hit in trace.ranked]
        assert len({(chunk.document.id, chunk.start, chunk.end) for chunk in found}) == len(found) <= chosen.depth
        assert set(found) <= {chunk.handed for chunk in line.chunks}
        assert {passage.document.id for passage in trace.context.passages} <= {
            hit.chunk.document.id for hit in trace.ranked
        }
        assert all(passage.text.strip() for passage in trace.context.passages)
        assert trace.context.tokens >= sum(chosen.tokens.count(passage.text) for passage in trace.context.passages)


def combinations(stages):
    """Every combination of the options of `stages`, by stage."""
    for names in itertools.product(*(OPTIONS[stage] for stage in stages)):
        yield dict(zip(stages, names, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "fixed", [*combinations(("embedder", "retriever"))], ids=lambda names: "-".join(names.values())
)
def test_every_combination_runs_or_is_refused_before_work_starts(parts, sample, fixed):
    audit, outcomes = audited(sample), []
    for rest in combinations([stage for stage in STAGES if stage not in fixed]):
        names = {**fixed, **rest}
        try:
            run(parts, sample, audit, names)
        except AblateError as error:  # a sentence, and not a crash
            outcomes.append(str(error))
    assert all(": found " in outcome and "; " in outcome for outcome in outcomes)
    assert len(set(outcomes)) <= 1


@pytest.mark.slow
def test_every_variant_runs_on_the_sample_and_is_in_the_table(tmp_path, monkeypatch):
    cli.workshop(tmp_path, monkeypatch)
    said = cli.ablate("-m", "+variant=glob(*)", "dataset=sample", "tracking=off", "latency=off")

    assert said.code == 0, said.err
    for variant in options()["variant"]:
        assert f"\n-  {variant}: " in said.out or f"{variant}: skipped: " in said.out, variant
