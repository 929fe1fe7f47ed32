"""The site has no pages for folders: a link to one becomes its text, if the repository has it."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def on_page_markdown(markdown, page, **_):
    here = (ROOT / page.file.src_uri).parent

    def unlink(link):
        target = here / link[2]
        folder = target.is_dir() or target.is_file() and not target.suffix
        return link[1] if folder and "://" not in link[2] else link[0]

    return re.sub(r"\[([^\]]*)\]\(([^)#\s]+)\)", unlink, markdown)
