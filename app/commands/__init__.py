"""What single commands of `knowngood` do, one file each. Like `app.__main__` they may import every room."""
