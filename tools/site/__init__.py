"""The documentation as a site: ``python -m tools.site FOLDER`` builds it, ``nox -s docs`` also tests it.

The site has the pages of ``docs`` and the other documents of the repository, a page for each file that they link to, an
API reference, and pages of numbers from data in the tree. docs/design/site.md says why it is made like this.
"""
