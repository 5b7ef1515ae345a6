"""Links out of docs/: a file becomes a download, a directory plain text.

The pages are read in the repository, too, where such links lead to the file or directory itself.
"""

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class OutsideLinks(SphinxTransform):
    """Replaces what MyST takes for links to pages that the site does not have."""

    default_priority = 200

    def apply(self, **kwargs: Any) -> None:
        """Go through the links of one page."""
        for link in list(self.document.findall(addnodes.pending_xref)):
            target = self._target(link)
            if target is None:
                continue
            if target.is_dir():
                link.replace_self(link.children)
                continue
            here = Path(self.env.doc2path(self.env.docname)).parent
            download = addnodes.download_reference(
                refdoc=self.env.docname,
                reftarget=Path(os.path.relpath(target, here)).as_posix(),
                refexplicit=True,
            )
            download.extend(link.children)
            link.replace_self(download)

    def _target(self, link: nodes.Element) -> Path | None:
        """What a link leads to, if that is there and outside of docs/."""
        if link.get("reftype") != "myst":
            return None
        name = link["reftarget"]
        if link.get("refdomain") == "doc":  # a page's name, which has lost its suffix
            name = f"/{os.path.relpath(name, self.env.srcdir)}.md"
        target = Path(self.env.relfn2path(name, self.env.docname)[1]).resolve()
        return None if not target.exists() or self.env.srcdir in target.parents else target


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_transform(OutsideLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
