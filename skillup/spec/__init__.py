"""What users write, as strict and frozen data models."""
