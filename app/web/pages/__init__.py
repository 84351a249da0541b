"""One page per file: its context as a frozen dataclass, a pure function that builds it, and the route."""
