"""Lock files and lists of packages, as people have them, become a Stated environment."""

from app.formats.environments.read import read_environment

__all__ = ["read_environment"]
