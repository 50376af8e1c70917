"""Evidence that a policy was not trained on."""

from bridle.certification.split import split_episodes

__all__ = ["split_episodes"]
