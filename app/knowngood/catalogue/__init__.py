"""The catalogue's files become domain values: `repros/*/issue.toml`, `repro.py` and `builds.toml`, checked as one.

Here: reading, checking, the published schema, the scaffold, the canonical standalone block (`opening.txt` above the
imports, `standalone.txt` at the end). Not here: running a repro, or anything that needs torch.
"""
