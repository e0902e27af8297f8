def dig():
    return None
