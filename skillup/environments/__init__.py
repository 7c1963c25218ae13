"""Where an agent's processes run, and what they leave in the workspace."""
