"""The conformance kit: failures of real agent CLIs, played by the fake one, and what must come of each."""
