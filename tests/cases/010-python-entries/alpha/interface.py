def attend():
    return None


class Box:
    def attend(self):
        return None
