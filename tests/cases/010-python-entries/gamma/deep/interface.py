import beta_cuda


def attend():
    return beta_cuda.run()
