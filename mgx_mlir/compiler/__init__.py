"""compile(): read a model, optimise it, lower it and compile it for a target, with caches.

The names of MIGraphX's API are in `api/`, what runs the result in `runtime/`.
"""
