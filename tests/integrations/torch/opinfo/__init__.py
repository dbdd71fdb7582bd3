"""torch's own samples of its functions (OpInfo), through torch.compile, against eager.

`python -m tests.integrations.torch.opinfo --help` runs all of them, or some.
"""
