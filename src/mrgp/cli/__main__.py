"""`python -m mrgp.cli`, for programs that have set OPENBLAS_NUM_THREADS themselves."""

from mrgp.cli.app import main

main()
