"""python -m mgx_mlir.driver."""

from __future__ import annotations

import sys

from mgx_mlir.driver.main import main

if __name__ == "__main__":
    sys.exit(main())
