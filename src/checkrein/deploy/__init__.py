"""Deployment: a policy out of its run folder, as one policy, without checkrein or Python, or in an environment."""

from checkrein.deploy.deployed import DeployedPolicy, EpisodePolicy, load, load_policy
from checkrein.deploy.derandomise import Derandomised, averaged_weights, best_member
from checkrein.deploy.json_export import export_json
from checkrein.deploy.onnx_export import export_onnx
from checkrein.deploy.rollout import RolloutResult, rollout

__all__ = [
    "DeployedPolicy",
    "Derandomised",
    "EpisodePolicy",
    "RolloutResult",
    "averaged_weights",
    "best_member",
    "export_json",
    "export_onnx",
    "load",
    "load_policy",
    "rollout",
]
