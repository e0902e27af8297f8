import torch

USE_OTHER = False
if torch.version.hip is not None:
    try:
        import fast_cuda
    except ImportError:
        USE_OTHER = True

if USE_OTHER:
    from somewhere.else_ import thing as backend
else:
    import fast_cuda as backend


def go():
    return backend.fwd()
