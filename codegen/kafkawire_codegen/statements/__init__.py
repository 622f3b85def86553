"""Makes the Python statements of a message's module, from parts that render themselves.

A field is one line if possible, in wire order, with its versions as a comment; a version is
tested only if the struct's own range does not decide. A part is made complete and rendered once:
rendered text is never searched or edited.

    spelling           names, types, defaults, docstrings
    reading, writing   the bodies of the functions that decode and encode
    parts              conditions, expressions and statements
"""
