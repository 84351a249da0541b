"""Commands of `knowngood` without a feature of their own, one file each. They may import every feature."""
