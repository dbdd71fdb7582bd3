"""Programs in 8 and 4 bits: what calibration sees, the ranges it chooses, and the rewriting."""
