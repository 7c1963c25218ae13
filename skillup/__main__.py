"""The entry point of `skillup` and `python -m skillup`."""

from skillup.cli import main

if __name__ == "__main__":
    main()
