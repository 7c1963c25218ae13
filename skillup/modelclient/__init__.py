"""Models that we call ourselves: the judge's."""
