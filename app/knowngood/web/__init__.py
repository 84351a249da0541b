"""The only HTTP: pages for people, the same reads as JSON for programs. Asks the store, shows what it says."""
