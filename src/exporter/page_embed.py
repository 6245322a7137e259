"""Makes page.html a part of the program: page_embed.py PAGE OUT.c OUT.h

The header has the hashes of the one script and the one style, for the page's Content-Security-Policy."""

import base64
import hashlib
import re
import sys


def digest(page: str, tag: str) -> str:
    parts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    if len(parts) != 1:
        sys.exit(f"page_embed: the page has {len(parts)} <{tag}> elements, not one")
    return "sha256-" + base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()


def main(source: str, code: str, header: str) -> None:
    with open(source, encoding="utf-8") as file:
        page = file.read()
    data = page.encode()
    with open(header, "w", encoding="ascii") as file:
        file.write(f'#define PAGE_SCRIPT_HASH "{digest(page, "script")}"\n#define PAGE_STYLE_HASH "{digest(page, "style")}"\n')
    with open(code, "w", encoding="ascii") as file:
        file.write("#include <stddef.h>\nextern const char page_html[];\nextern const size_t page_html_len;\nconst char page_html[] = {")
        file.write(",".join(str(byte if byte < 128 else byte - 256) for byte in data))
        file.write(f",0}};\nconst size_t page_html_len = {len(data)};\n")


main(*sys.argv[1:])
