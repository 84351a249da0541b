"""Lock files and lists of packages, as people have them, become a Stated environment."""

from knowngood.app.features.environments.detect import read_environment

__all__ = ["read_environment"]
