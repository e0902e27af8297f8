try:
    import fast_cuda as backend
except ImportError:
    backend = None


def go():
    return backend.fwd()
