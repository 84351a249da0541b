"""Between which two releases an issue began or ended, measured."""
