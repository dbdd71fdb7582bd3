"""Programs in 8 and 4 bits: calibration, choice of ranges, and rewriting."""
