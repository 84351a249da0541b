"""Pure rules, with no I/O: values and the functions that decide. Standard library and `packaging` only.

Here: issues, builds, plans, outcomes, verdicts, history. Not here: files, SQL, HTTP, clocks, chance.
Every value is a frozen dataclass of JSON-friendly fields, so that one pydantic adapter can carry it anywhere.
"""
