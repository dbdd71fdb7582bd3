"""The Open Inference Protocol, version 2, over HTTP: parsed, checked, answered; no server."""
