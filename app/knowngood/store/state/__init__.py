"""The state of a store: its tables, its rules, its catalogue; and how it is brought to this release."""
