"""Deployment: a policy out of its run folder, as one policy, without bridle or Python, or in an environment."""

from bridle.deploy.deployed import DeployedPolicy, EpisodePolicy, load, load_policy
from bridle.deploy.derandomise import Derandomised, averaged_weights, best_member
from bridle.deploy.json_export import export_json
from bridle.deploy.onnx_export import export_onnx
from bridle.deploy.rollout import RolloutResult, rollout

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
