_module = None
_never = None


def load():
    global _module
    if _module is None:
        import fast_cuda

        _module = fast_cuda
    return _module


def run(x):
    _module.fwd(x)
    load().bwd(x)
    return _never.fwd(x)
