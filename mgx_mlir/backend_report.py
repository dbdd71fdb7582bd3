"""`python -m mgx_mlir.backend_report`: the onnx package's whole backend suite, and how it went."""

from mgx_mlir.integrations.backend_report.main import main

if __name__ == "__main__":
    raise SystemExit(main())
