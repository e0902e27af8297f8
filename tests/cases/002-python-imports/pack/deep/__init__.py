from .bottom import dig
