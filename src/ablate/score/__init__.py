"""Rankings and contexts go in beside the frozen ground truth, values per query and their summaries come out."""

from ablate.score.curve import Reader
from ablate.score.line import Exposure, of_chunks, of_ranking, of_record, of_trace
from ablate.score.settings import Scoring
from ablate.score.summary import summarise, to_json, whole

__all__ = [
    "Exposure",
    "Reader",
    "Scoring",
    "of_chunks",
    "of_ranking",
    "of_record",
    "of_trace",
    "summarise",
    "to_json",
    "whole",
]
