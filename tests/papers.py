"""DOCX and PDF files to import: the parts of a DOCX written out, a PDF drawn by a library."""

import io
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml"

TYPES = f"""<Types xmlns="{PACKAGE}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/word/document.xml" ContentType="{MAIN}.document.main+xml"/>
<Override PartName="/word/styles.xml" ContentType="{MAIN}.styles+xml"/>
<Override PartName="/word/numbering.xml" ContentType="{MAIN}.numbering+xml"/></Types>"""
LINKS = f"""<Relationships xmlns="{PACKAGE}/relationships">
<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>"""
INNER = f"""<Relationships xmlns="{PACKAGE}/relationships">
<Relationship Id="r1" Type="{OFFICE}/styles" Target="styles.xml"/>
<Relationship Id="r2" Type="{OFFICE}/numbering" Target="numbering.xml"/></Relationships>"""
STYLES = f"""<w:styles xmlns:w="{WORD}">
<w:style w:type="paragraph" w:styleId="a1"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="2"><w:name w:val="heading 2"/></w:style>
<w:style w:type="paragraph" w:styleId="3"><w:name w:val="Source Code"/></w:style></w:styles>"""
LEVELS = "".join(
    f'<w:abstractNum w:abstractNumId="{number}">'
    + "".join(f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="{format}"/></w:lvl>' for level in (0, 1))
    + "</w:abstractNum>"
    for number, format in ((0, "bullet"), (1, "decimal"))
)
NUMBERS = "".join(f'<w:num w:numId="{n + 1}"><w:abstractNumId w:val="{n}"/></w:num>' for n in (0, 1))
NUMBERING = f'<w:numbering xmlns:w="{WORD}">{LEVELS}{NUMBERS}</w:numbering>'
BULLET, DECIMAL = 1, 2


def paragraph(text, style="", list=0, level=0):
    """A paragraph of Word; `style` is the id of one, `list` BULLET or DECIMAL."""
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    listed = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list}"/></w:numPr>' if list else ""
    return f"<w:p><w:pPr>{styled}{listed}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def table(*rows):
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def docx(*body, title="", more=()):
    """The bytes of a DOCX file; `more` are further parts of it, name and content."""
    core = f'<c:p xmlns:c="x" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></c:p>'
    parts = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": LINKS,
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{"".join(body)}</w:body></w:document>',
        "word/_rels/document.xml.rels": INNER,
        "word/styles.xml": STYLES,
        "word/numbering.xml": NUMBERING,
        "docProps/core.xml": core,
        **dict(more),
    }
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return found.getvalue()


def pdf(*pages, password="", title=""):
    """The bytes of a PDF file; a page is a list of calls of the functions below, each of which draws."""
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    found = io.BytesIO()
    lock = StandardEncryption(password) if password else None
    canvas = Canvas(found, pagesize=(595, 842), invariant=1, encrypt=lock)
    if title:
        canvas.setTitle(title)
    for page in pages:
        for draw in page:
            draw(canvas)
        canvas.showPage()
    canvas.save()
    return found.getvalue()


def line(text, y, x=60, size=10):
    """A line of text in points from the left and the top; the font has Cyrillic letters."""

    def draw(canvas):
        canvas.setFont(font(), size)
        canvas.drawString(x, 842 - y, text)

    return draw


def lines(texts, y, x=60, size=10, leading=13):
    return [line(text, y + leading * number, x, size) for number, text in enumerate(texts)]


def grid(rows, y, x=60, width=120, height=20):
    """A table with ruled lines."""

    def draw(canvas):
        bottom, right = 842 - y - height * len(rows), x + width * len(rows[0])
        canvas.grid(
            [x + width * n for n in range(len(rows[0]) + 1)], [bottom + height * n for n in range(len(rows) + 1)]
        )
        canvas.setFont(font(), 10)
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                canvas.drawString(x + width * column + 4, 842 - y - height * (number + 1) + 6, cell)
        assert right <= 595

    return draw


def form(*drawn):
    """What is drawn, as one object that the page only refers to."""

    def draw(canvas):
        canvas.beginForm("form", 0, 0, 595, 842)
        for each in drawn:
            each(canvas)
        canvas.endForm()
        canvas.doForm("form")

    return draw


def picture(x=0, y=0, width=595, height=842):
    """A grey picture; the whole page of it is what a scanner makes."""

    def draw(canvas):
        from PIL import Image
        from reportlab.lib.utils import ImageReader

        canvas.drawImage(ImageReader(Image.new("L", (60, 80), 200)), x, 842 - y - height, width, height)

    return draw


def font():
    import matplotlib
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    if "DejaVu" not in pdfmetrics.getRegisteredFontNames():
        path = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
        pdfmetrics.registerFont(TTFont("DejaVu", str(path)))
    return "DejaVu"
