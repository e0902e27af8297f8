import functools


def logged(function):
    @functools.wraps(function)
    def inner(value):
        return function(value)

    return inner


@logged
def helper(value):
    return len(value)


class Base:
    def __init__(self):
        self.start()

    def start(self):
        return helper([])


class Child(Base):
    def __init__(self):
        super().__init__()

    @staticmethod
    def make():
        return Child()

    @classmethod
    def fresh(cls):
        return cls()

    def run(self):
        self.start()
        Child.make()
        return self.missing()


def outer():
    def local():
        return helper("x")

    child = Child()
    child.run()
    Child().start()
    return local()
