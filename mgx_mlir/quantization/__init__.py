"""Programs in 8 and 4 bits: calibration, the choice of ranges, and the rewriting."""
