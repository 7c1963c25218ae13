"""From saved evidence to a verdict."""
