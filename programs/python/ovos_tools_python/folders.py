"""From where this interpreter imports. Others who can write there choose the code that the service runs, so the service asks first.

This file imports nothing but what every start of Python does.
"""

import os
import sys
from typing import List


def before_site() -> List[str]:
    """The folders of an interpreter that was started with `-S`: `site` finds them, and runs no code of a package.

    A line of a .pth file that is a folder counts. One that is code is not run, and neither are sitecustomize and usercustomize.
    """
    import site

    ignored = lambda *_: None  # noqa: E731
    # It hides the built-in function from that module.
    setattr(site, "exec", ignored)
    site.execsitecustomize = site.execusercustomize = ignored
    site.main()
    return _path()


def after_site() -> List[str]:
    """The folders of an interpreter that was started as ever: packages may have added some."""
    return _path() + _editable()


def _path() -> List[str]:
    return [os.path.abspath(folder) for folder in sys.path]


def _editable() -> List[str]:
    """Where the packages are that `pip install --editable` of setuptools leaves in their folders."""
    found = []
    for finder in sys.meta_path:
        name = getattr(finder, "__module__", None) or ""
        if name.startswith("__editable__"):
            mapping = getattr(sys.modules.get(name), "MAPPING", None) or {}
            found += [str(path) for path in mapping.values()]
    return found
