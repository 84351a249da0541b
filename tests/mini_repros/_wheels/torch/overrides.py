_modes = []


class TorchFunctionMode:
    def __enter__(self):
        _modes.append(self)
        return self

    def __exit__(self, *_):
        _modes.pop()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def call(function, *args):
    if not _modes:
        return function(*args)
    mode = _modes.pop()
    try:
        return mode.__torch_function__(function, (), args)
    finally:
        _modes.append(mode)
