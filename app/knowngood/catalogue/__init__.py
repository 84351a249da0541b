"""The catalogue's files become domain values: `repros/*/issue.toml`, `repro.py` and `builds.toml`, checked as one.

Here: reading, checking, the published schema, the scaffold, a script as one file that needs nothing else. Not here:
running a repro, or anything that needs torch.
"""
