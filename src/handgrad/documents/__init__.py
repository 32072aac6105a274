"""Notes as data, and as files: HTML, Markdown, LaTeX and PDF, in two languages."""
