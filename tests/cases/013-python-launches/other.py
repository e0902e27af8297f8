import kernels


def launch(x):
    kernels.kernel[(1,)](x)
