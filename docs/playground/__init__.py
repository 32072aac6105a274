"""The playground: a static page on which handgrad runs in the reader's browser, by Pyodide.

`page` is what the browser gets, `examples` are the functions that it offers, and `build` puts both
into a folder with the archive of Python packages. docs/playground.md says how to serve it.
"""
