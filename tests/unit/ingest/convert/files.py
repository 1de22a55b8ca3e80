"""Files of other formats than HTML, as small as they can be and still be read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

OFFICE = "http://schemas.openxmlformats.org"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
ODT = "application/vnd.oasis.opendocument.text"
EPUB = "application/epub+zip"


def pdf(pages: Sequence[str], *, title: str = "", encrypt: bool = False) -> bytes:
    """A PDF of these pages, a line of text per line; one that begins with `# ` is a large one."""
    objects: list[bytes] = []

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    font = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    parent = len(objects) + 2 * len(pages) + 1
    kids = []
    for page in pages:
        lines = [line.replace("(", r"\(").replace(")", r"\)") for line in page.splitlines()]
        drawn = "\n".join(
            f"/F1 28 Tf ({line[2:]}) Tj /F1 12 Tf T* T*" if line[:2] == "# " else f"({line}) Tj T*"
            for line in lines
        )
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {drawn} ET".encode("latin-1")
        content = add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(
            add(
                b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
                b"/Resources << /Font << /F1 %d 0 R >> >> >>" % (parent, content, font)
            )
        )
    listed = b" ".join(b"%d 0 R" % kid for kid in kids)
    add(b"<< /Type /Pages /Kids [%s] /Count %d >>" % (listed, len(kids)))
    catalog = add(b"<< /Type /Catalog /Pages %d 0 R >>" % parent)
    about = add(b"<< /Title (%s) >>" % title.encode("latin-1"))
    extra = b" /Info %d 0 R" % about
    if encrypt:
        locked = add(
            b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (b"01" * 32, b"02" * 32)
        )
        extra += b" /Encrypt %d 0 R /ID [<00> <00>]" % locked
    return _with_index(objects, b"/Root %d 0 R%s" % (catalog, extra))


def _with_index(objects: list[bytes], trailer: bytes) -> bytes:
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    out.write(b"trailer\n<< /Size %d %s >>\n" % (len(objects) + 1, trailer))
    out.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


def docx(heading: str, paragraph: str) -> bytes:
    return _office(
        "word/document.xml",
        f"{DOCX}.main+xml",
        f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
        f"<w:r><w:t>{heading}</w:t></w:r></w:p><w:p><w:r><w:t>{paragraph}</w:t></w:r></w:p>"
        "</w:body></w:document>",
    )


def xlsx(rows: Sequence[Sequence[str]]) -> bytes:
    cells = "".join(
        "<row>"
        + "".join(f'<c t="inlineStr"><is><t>{value}</t></is></c>' for value in row)
        + "</row>"
        for row in rows
    )
    return _office(
        "xl/workbook.xml",
        f"{XLSX}.main+xml",
        f'<workbook xmlns="{SHEET}" xmlns:r="{RELATIONS}"><sheets>'
        '<sheet name="Prices" sheetId="1" r:id="rId1"/></sheets></workbook>',
        **{
            "xl/_rels/workbook.xml.rels": _relation("worksheet", "worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": (
                f'<worksheet xmlns="{SHEET}"><sheetData>{cells}</sheetData></worksheet>'
            ),
        },
    )


def pptx(title: str) -> bytes:
    return _office(
        "ppt/presentation.xml",
        f"{PPTX}.main+xml",
        f'<p:presentation xmlns:p="{SLIDES}" xmlns:r="{RELATIONS}"><p:sldIdLst>'
        '<p:sldId id="256" r:id="rId1"/></p:sldIdLst></p:presentation>',
        **{
            "ppt/_rels/presentation.xml.rels": _relation("slide", "slides/slide1.xml"),
            "ppt/slides/slide1.xml": (
                f'<p:sld xmlns:p="{SLIDES}" xmlns:a="{DRAWING}"><p:cSld><p:spTree><p:sp><p:txBody>'
                f"<a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
            ),
        },
    )


def odt(paragraph: str) -> bytes:
    text = "urn:oasis:names:tc:opendocument:xmlns"
    return _zip(
        {
            "mimetype": ODT,
            "content.xml": (
                f'<o:document-content xmlns:o="{text}:office:1.0" xmlns:t="{text}:text:1.0">'
                f"<o:body><o:text><t:p>{paragraph}</t:p></o:text></o:body></o:document-content>"
            ),
        }
    )


def epub(title: str, paragraph: str) -> bytes:
    return _zip(
        {
            "mimetype": EPUB,
            "META-INF/container.xml": (
                '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
                '<rootfiles><rootfile full-path="book.opf" '
                'media-type="application/oebps-package+xml"/></rootfiles></container>'
            ),
            "book.opf": (
                '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
                'xmlns:dc="http://purl.org/dc/elements/1.1/">'
                f"<dc:title>{title}</dc:title></metadata>"
                '<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
                '</manifest><spine><itemref idref="c"/></spine></package>'
            ),
            "c.xhtml": (
                '<html xmlns="http://www.w3.org/1999/xhtml"><body>'
                f"<h1>{title}</h1><p>{paragraph}</p></body></html>"
            ),
        }
    )


def _office(main: str, main_type: str, content: str, **more: str) -> bytes:
    return _zip(
        {
            "[Content_Types].xml": (
                f'<Types xmlns="{PACKAGE}/content-types">'
                '<Default Extension="rels" '
                'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
                '<Default Extension="xml" ContentType="application/xml"/>'
                f'<Override PartName="/{main}" ContentType="{main_type}"/></Types>'
            ),
            "_rels/.rels": _relation("officeDocument", main),
            main: content,
            **more,
        }
    )


def _relation(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{RELATIONS}/{kind}" Target="{target}"/></Relationships>'
    )


def _zip(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()
