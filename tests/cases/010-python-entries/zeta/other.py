def real():
    return None


attend = real
