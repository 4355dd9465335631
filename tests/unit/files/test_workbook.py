"""Workbooks of Excel, read as tables."""

import zipfile

import pytest

from monitor.files.formats.detect import Kind, format_of
from monitor.files.maps.propose import propose
from monitor.files.streams.encodings import open_stream
from tests.unit.files.native_logs import Read

NS = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def sheet(rows):
    return f'<worksheet {NS}><sheetData>{rows}</sheetData><mergeCells><mergeCell ref="A9:B9"/></mergeCells></worksheet>'


def workbook(path, *sheets, texts="", styles="", states=()):
    parts = {f"xl/worksheets/sheet{k}.xml": each for k, each in enumerate(sheets)}
    related = [(f"r{k}", "worksheet", f"worksheets/sheet{k}.xml") for k in range(len(sheets))]
    related += [("s", "sharedStrings", "/xl/sharedStrings.xml"), ("y", "styles", "styles.xml")]
    ties = "".join(f'<Relationship Id="{name}" Type="{REL}/{kind}" Target="{to}"/>' for name, kind, to in related)
    states = [*states, *["visible"] * len(sheets)]
    listed = "".join(
        f'<sheet name="S{k}" sheetId="{k + 1}" state="{states[k]}" r:id="r{k}"/>' for k in range(len(sheets))
    )
    parts |= {
        "xl/_rels/workbook.xml.rels": f"<Relationships>{ties}</Relationships>",
        "xl/workbook.xml": f'<workbook {NS} xmlns:r="{REL}"><sheets>{listed}</sheets></workbook>',
        "xl/sharedStrings.xml": f"<sst {NS}>{texts}</sst>",
        "xl/styles.xml": f"<styleSheet {NS}>{styles}</styleSheet>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def row(number, *cells):
    return f'<row r="{number}">{"".join(cells)}</row>'


def text(place, value):
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def read(path):
    stream, notes, parts = open_stream(path), [], []
    stream.note = notes.append
    while part := stream.read(1 << 16):
        parts.append(part)
    stream.close()
    return b"".join(parts).decode(), notes, stream.damage and f"{stream.damage}; {stream.remedy}"


HEADER = row(1, text("A1", "item_id"), text("B1", "model"), text("C1", "score"))


def test_cells_are_what_a_table_of_text_would_have(tmp_path):
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/><numFmt numFmtId="165" formatCode="0.0&quot;days&quot;"/></numFmts>'
        '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="9"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="22"/></cellXfs>'
    )
    texts = "<si><t>NO</t></si><si><r><t>01</t></r><r><t>0_x0041_</t></r><rPh><t>spoken</t></rPh></si>"
    rows = [
        row(2, '<c r="A2"><v>1.0</v></c>', '<c r="B2" t="s"><v>0</v></c>', '<c r="C2" s="1"><v>0.85</v></c>'),
        row(
            3,
            '<c r="A3"><v>12345678901234567890</v></c>',
            '<c r="B3" t="s"><v>1</v></c>',
            '<c r="C3" t="b"><v>1</v></c>',
        ),
        row(4, '<c r="A4" s="2"><v>46023</v></c>', text("B4", 'a, "b"'), '<c r="C4" s="3"><v>2.50</v></c>'),
        row(6, '<c r="A6" s="4"><v>46023.4375</v></c>', '<c r="C6"><f>1+1</f><v>2</v></c>'),
        row(7, '<c r="A7" t="str"><f>T(B1)</f><v>007</v></c>', '<c r="B7"><f>1+1</f><v/></c>', text("D7", "outside")),
    ]
    lines, notes, damage = read(
        workbook(tmp_path / "a.xlsx", sheet(HEADER + "".join(rows)), texts=texts, styles=styles)
    )
    assert damage is None
    assert lines.split("\n") == [
        "item_id,model,score",
        "1,NO,0.85",
        "12345678901234567890,010A,true",
        '2026-01-01,"a, ""b""",2.5',
        "",
        "2026-01-01T10:30:00,,2",
        "007,,",
        "",
    ]
    assert len(notes) == 3
    assert any("formulas have no stored value" in note and "(1;" in note for note in notes)
    assert any("cells outside the columns" in note and "(1;" in note for note in notes)
    assert any("merged" in note for note in notes)


def test_the_first_sheet_with_column_names_is_read_and_the_others_are_named(tmp_path):
    cover = sheet(row(1, text("A1", "Results")))
    table = sheet(row(2, text("B2", "Title")) + row(5, text("B5", "item_id"), text("C5", "score")))
    path = workbook(tmp_path / "a.xlsx", sheet(HEADER), cover, table, sheet(HEADER), states=["hidden"])
    lines, notes, _ = read(path)
    assert lines == "\n\n\n\nitem_id,score\n"
    assert "only its sheet S2 is read, not S1, S3, S0" in notes[0].replace('"', "")
    assert "above the column names" in notes[1]
    assert format_of(path) is Kind.TABLE


def test_a_workbook_of_another_name_is_recognized_by_its_content(tmp_path):
    assert format_of(workbook(tmp_path / "upload", sheet(HEADER))) is Kind.TABLE


def test_a_row_padded_to_the_end_of_the_sheet_is_read(tmp_path):
    last = row(1_048_576, text("A1048576", "q"), text("B1048576", "m"), '<c r="C1048576"><v>1</v></c>')
    lines, _, damage = read(workbook(tmp_path / "a.xlsx", sheet(HEADER + last)))
    assert damage is None
    assert lines.count("\n") == 1_048_576
    assert lines.endswith("\nq,m,1\n")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (row(1_048_577, text("A1", "q")), "row 1048577 follows row 1"),
        (row(1, text("A1", "q")), "row 1 follows row 1"),
        (row("x", text("A1", "q")), "row x follows row 1"),
        (row(2, text("XFE2", "q")), "cell XFE2 in row 2 is out of order, or beyond column XFD"),
        (row(2, text("B2", "q"), text("A2", "q")), "cell A2 in row 2 is out of order"),
        (row(2, '<c r="A2" t="s"><v>7</v></c>'), "the shared text 7, and there are 0"),
        (row(2, text("A2", "q" * (1 << 20) + "q")), "a cell of row 2 has more than 1,048,576 characters"),
        ("<row", "xl/worksheets/sheet0.xml is not valid XML at line 1"),
        ("<row>" + "<c " + 'a="' + "b" * (1 << 21), "a tag of more than 1,048,576 bytes"),
    ],
)
def test_a_damaged_sheet_is_refused_with_its_place_and_what_to_do(tmp_path, rows, problem):
    _, _, damage = read(workbook(tmp_path / "a.xlsx", sheet(HEADER + rows)))
    assert problem in damage.replace('"', "")
    assert "save it again" in damage or "shorten" in damage


def test_entities_are_refused(tmp_path):
    bomb = '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>' + sheet(HEADER)
    lines, _, damage = read(workbook(tmp_path / "a.xlsx", bomb))
    assert lines == ""
    assert "a part has a DOCTYPE" in damage


def test_a_bomb_of_references_ends_at_a_bounded_row(tmp_path):
    texts = "<si><t>" + "x" * 1_000_000 + "</t></si>"
    cells = "".join('<c t="s"><v>0</v></c>' for _ in range(10_000))
    lines, _, damage = read(workbook(tmp_path / "a.xlsx", sheet(HEADER + row(2, cells)), texts=texts))
    assert "row 2 has more text than is read" in damage
    assert len(lines) < 100


def test_a_part_that_declares_more_than_is_read_is_not_unpacked(tmp_path):
    path = workbook(tmp_path / "a.xlsx", sheet(HEADER))
    data = path.read_bytes()
    at = data.rindex(b"xl/sharedStrings.xml") - 46
    path.write_bytes(data[: at + 24] + (1 << 28).to_bytes(4, "little") + data[at + 28 :])
    assert "xl/sharedStrings.xml unpacks to 268,435,456 bytes" in read(path)[2]


@pytest.mark.parametrize(
    ("cut", "problem"), [(40, "the zip archive is damaged"), (0, "no sheet has a row with two column names")]
)
def test_a_workbook_that_cannot_be_read_says_so(tmp_path, cut, problem):
    path = workbook(tmp_path / "a.xlsx", sheet(HEADER if cut else row(1, text("A1", "q"))))
    data = bytearray(path.read_bytes())
    if cut:
        data[cut : cut + 60] = bytes(60)
        path.write_bytes(data)
    assert problem in read(path)[2].replace("its zip", "the zip")


def test_what_is_not_read_of_a_workbook_is_noted_by_a_reader_of_a_tool_and_by_a_mapping(tmp_path):
    names = ("user_input", "response", "faithfulness")
    head = row(3, *map(text, ("A3", "B3", "C3"), names))
    path = workbook(
        tmp_path / "m.xlsx", sheet(head + row(4, text("A4", "q"), text("B4", "a"), "<c><v>1</v></c>")), sheet("")
    )
    own = Read(path)
    (tmp_path / "rankwatch.toml").write_text(propose(path).text)
    mapped = Read(path)
    for read in (own, mapped):
        assert [(event.item_id, event.score) for event in read.events] == [("q", 1.0)]
        assert any("only its sheet S0 is read" in note for note in read.notes)


def test_a_workbook_that_is_damaged_further_down_keeps_its_rows_and_names_its_own_remedy(tmp_path):
    rows = [row(k, text(f"A{k}", f"q{k}"), text(f"B{k}", "m"), f'<c r="C{k}"><v>1</v></c>') for k in range(2, 4)]
    read = Read(workbook(tmp_path / "a.xlsx", sheet(HEADER + "".join(rows) + "<row>&x;</row>")))
    assert [event.item_id for event in read.events] == ["q2", "q3"]
    (reject,) = read.rejects
    assert reject["reason"].endswith("; save it again in Excel or LibreOffice, or export the sheet as CSV")
    assert "only what comes ahead of the damage is read" in reject["reason"]
