"""Options and help of each command, one file for each heading of `knowngood --help`.

The function that a command is stands in the module that its declaration names; nothing of that is imported here, so
that help is quick.
"""
