def zeros():
    return None
