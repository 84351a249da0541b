_modes = []


class TorchFunctionMode:
    def __enter__(self):
        _modes.append(self)
        return self

    def __exit__(self, *_):
        _modes.pop()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def call(function):
    if not _modes:
        return function()
    mode = _modes.pop()
    try:
        return mode.__torch_function__(function, ())
    finally:
        _modes.append(mode)
