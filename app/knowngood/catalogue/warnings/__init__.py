"""Signs that a verdict may be fooled although a row's files are in order: the warnings of `knowngood check`."""
