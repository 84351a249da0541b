"""What single commands of `knowngood` do, one file each. Like `knowngood.app.main` they may import every room."""
