"""Reports: results in, texts out. They read what was saved and nothing else."""
