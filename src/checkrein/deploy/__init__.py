"""Deployment: a policy out of its run folder, without checkrein or Python, or in an environment."""

from checkrein.deploy.deployed import DeployedPolicy, EpisodePolicy, load, load_policy
from checkrein.deploy.json_export import export_json
from checkrein.deploy.onnx_export import export_onnx
from checkrein.deploy.rollout import RolloutResult, rollout

__all__ = [
    "DeployedPolicy",
    "EpisodePolicy",
    "RolloutResult",
    "export_json",
    "export_onnx",
    "load",
    "load_policy",
    "rollout",
]
