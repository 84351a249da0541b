__version__ = "1.99.0"
