def step():
    return None
