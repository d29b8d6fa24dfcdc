"""`python -m mrgp.cli`: the `mrgp` command of this Python.

The compiler reads whether it is to write alarms when JAX is loaded, which importing this package
has done by now. Where nobody said it but JAX, the interpreter begins again in the same process.
"""

import os
import sys

from mrgp.cli.app import main
from mrgp_command import SILENT, prepare

OF_JAX = "1"
"""What JAX sets the variable to where nobody has; alarms pass then."""

if os.name == "posix" and os.environ.get(SILENT, OF_JAX) == OF_JAX:
    os.environ.pop(SILENT, None)
    prepare()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

main()
