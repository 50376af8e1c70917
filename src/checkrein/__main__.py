"""Run the command line as `python -m checkrein`."""

from checkrein.cli import main

main()
