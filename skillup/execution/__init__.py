"""One trial, many trials, and the directory that they are saved in."""
