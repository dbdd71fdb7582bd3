"""The Open Inference Protocol, version 2: parsing, checks and answers, without a server."""
