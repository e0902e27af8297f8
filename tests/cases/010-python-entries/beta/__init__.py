from beta.interface import attend
