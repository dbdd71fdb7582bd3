"""Run compiled code: devices, buffers, streams and calls of IREE modules.

Nothing here compiles.
"""
