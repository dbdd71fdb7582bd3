"""The server of `mgx-driver serve`: HTTP in one process, runs in worker processes that can be
ended.
"""
