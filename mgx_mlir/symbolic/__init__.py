"""Integer expressions over sizes that are known only at run time, and proofs about them.

Nothing here depends on operators; `programs/` derives the extents of a program.
"""
