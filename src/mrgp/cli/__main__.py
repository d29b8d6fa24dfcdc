"""`python -m mrgp.cli`."""

from mrgp.cli.app import main

main()
