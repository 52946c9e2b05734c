"""`python -m tocsin` is the same as `tocsin`."""

from tocsin.console.cli import main

main()
