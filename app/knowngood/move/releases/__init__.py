"""One release of torch over an earlier one: install it, wait or stay, and what it fixes, breaks and leaves broken."""
