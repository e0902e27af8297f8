def attend():
    return None
