"""The commands: mgx-driver, mgx-opt and mgx-reduce. Nothing imports them."""
