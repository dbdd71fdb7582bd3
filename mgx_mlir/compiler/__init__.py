"""compile(): a model is read, optimised, lowered and compiled for a target, by way of caches.

The names of MIGraphX's API are in `api/`, what runs the result in `runtime/`.
"""
