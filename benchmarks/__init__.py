"""What skillup adds to the CLI that it drives, measured. Run by hand: `make bench`, or `python -m benchmarks NAME…`."""
