"""What may fool a verdict although a row's files are in order: the warnings of `knowngood check`."""
