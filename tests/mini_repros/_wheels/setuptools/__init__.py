__version__ = "79.0.0"
