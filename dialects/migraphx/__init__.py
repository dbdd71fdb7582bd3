"""The operators of the migraphx dialect, a file per family."""
