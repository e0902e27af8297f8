FALL_BACK = False
try:
    import fast_cuda
except ImportError:
    FALL_BACK = True

if FALL_BACK:
    from .slow import fwd
else:
    from .quick import fwd


def go():
    return fwd()
