"""What two runs found and nobody has judged, to a person and back: sheets, verdicts, new versions of a ground truth."""
