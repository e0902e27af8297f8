from slow_C import direct as straight


def run(x):
    return straight(x)
