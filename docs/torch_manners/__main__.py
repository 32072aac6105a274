"""Do all of it again and write the page: `python -m docs.torch_manners`."""

from docs.torch_manners.page import PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
