from .site import add_pages as add_pages
