"""mgx_mlir on Ray: batches of data sets, and a service (the extra `ray`).

from mgx_mlir.integrations.ray import MgxPredictor, serve_models
"""

from mgx_mlir.integrations.ray.artefacts import Artefact, forget_artefacts, shared_program
from mgx_mlir.integrations.ray.deployment import MgxDeployment, ServeSettings, serve_models
from mgx_mlir.integrations.ray.predictor import MgxPredictor

__all__ = [
    "Artefact",
    "MgxDeployment",
    "MgxPredictor",
    "ServeSettings",
    "forget_artefacts",
    "serve_models",
    "shared_program",
]
