"""Files of the user's turned into the spec, with a place for every fault."""
