"""
The event log and what stands in it: the only package that writes facts or decides what is current.

Promises: an accepted append is durable, never edited, and visible in commit order; a read
at a cut gives the same answer for ever.
Does not promise: that what an event says is true.

Its doors are its modules `log`, `write`, `resolve`, `closure` and `erase`. This file imports
nothing, so that a ban on one of them cannot be walked around through the package.
"""
