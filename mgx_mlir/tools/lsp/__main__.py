"""python -m mgx_mlir.tools.lsp"""

from __future__ import annotations

import sys

from mgx_mlir.tools.lsp.main import main

if __name__ == "__main__":
    sys.exit(main())
