import torch.nn as nn


class Inner(nn.Module):
    def forward(self, x):
        return self.scale(x)

    @property
    def scale(self):
        return multiply


def multiply(x):
    return x


class Plain:
    def __call__(self, x):
        return multiply(x)

    def step(self):
        return self


class Outer(nn.Module):
    def __init__(self, fast):
        super().__init__()
        self.inner = Inner() if fast else Plain()
        self.norm = nn.LayerNorm(8)

    def forward(self, x, plain: Plain, maybe: "Plain | None" = None):
        self.register_buffer("b", x)
        self.norm(x)
        plain.step()
        maybe.step().step()
        return self.inner(x)


class Third:
    def __init__(self):
        self.plain = Plain()

    def go(self):
        return self.plain.step()
