"""mgx-lsp-server: editors' questions about .mlir files, by the Language Server Protocol."""
