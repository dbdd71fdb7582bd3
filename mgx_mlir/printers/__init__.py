"""printers."""
