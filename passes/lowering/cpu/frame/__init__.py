"""The frame of a CPU vector kernel: dispatch, lanes, elements, epilogues."""
