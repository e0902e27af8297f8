"""The value-flow graph of a kernel, of the reference kernel and of the papers' listings, and whether they agree."""
