"""Run the command line as `python -m bridle`."""

from bridle.cli import main

main()
