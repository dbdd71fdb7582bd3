"""Another name of `python -m mgx_mlir.backend_report`."""

from mgx_mlir.integrations.backend_report.main import main

if __name__ == "__main__":
    raise SystemExit(main())
