"""What the JSON API answers, as pydantic models. Names here are scripted against: adding is fine, renaming is not.

Imports no web framework, so that the command line prints the very same shapes.
"""
