"""Run the command line: `python -m iclbench`."""

from .cli import main

if __name__ == "__main__":
    main()
