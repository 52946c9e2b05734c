"""XML of strangers: what is plain is read, what is hostile is refused, and nothing else happens."""

from __future__ import annotations

import resource
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from served import ROOT
from tocsin.errors import BadXml
from tocsin.safexml import (
    ATTRIBUTES_MAX,
    DEPTH_MAX,
    after_prolog,
    carried_as,
    parse,
    to_utf8,
)

HOSTILE = ROOT.parent / "shared" / "data" / "hostile"
KINDS = {".xml", ".svg", ".xsl", ".ent", ".dtd", ".xsd"}
needs_hostile_files = pytest.mark.skipif(
    not HOSTILE.is_dir(), reason="the hostile files are not beside the project"
)


def is_refused(data: bytes) -> bool:
    try:
        parse(data)
    except BadXml:
        return True
    return False


def hostile_files() -> Iterator[tuple[str, bytes]]:
    for path in sorted(HOSTILE.rglob("*")):
        is_xml = path.suffix in KINDS or "XXE" in str(path)
        if path.is_file() and is_xml:
            yield str(path.relative_to(HOSTILE)), path.read_bytes()
            if path.suffix == ".txt":
                yield from ((path.name, line) for line in path.read_bytes().splitlines())


def conformance_files() -> Iterator[tuple[str, bytes]]:
    [archive] = (HOSTILE / "w3c-xmlconf").glob("*.tgz")
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and Path(member.name).suffix in KINDS:
                file = tar.extractfile(member)
                assert file is not None
                yield member.name, file.read()


@needs_hostile_files
@pytest.mark.parametrize("files", [hostile_files, conformance_files])
def test_hostile_files_are_refused_or_read_quickly_in_little_memory(
    files: Callable[[], Iterator[tuple[str, bytes]]],
) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers: dict[bool, int] = {True: 0, False: 0}
    for name, data in files():
        started = perf_counter()
        try:
            root = parse(data)
        except BadXml:
            answers[True] += 1
        else:
            answers[False] += 1
            assert root.getroottree().docinfo.internalDTD is None, name
        assert perf_counter() - started < 1, name

    assert answers[True] > 50
    assert answers[False] > 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 64 * 1024


def test_no_entity_of_a_file_or_an_address_is_ever_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    for what in (f'SYSTEM "file://{secret}"', 'SYSTEM "http://127.0.0.1:9/x"', '"inside"'):
        document = f"<!DOCTYPE a [<!ENTITY e {what}>]><a b='&lt;'>&e;</a>".encode()
        with pytest.raises(BadXml, match="document type"):
            parse(document)
        with pytest.raises(BadXml, match="document type"):
            parse(document.decode().encode("utf-16"))
        with pytest.raises(BadXml):
            parse(document.replace(b"DOCTYPE", b"doctype"))


def test_a_document_type_is_found_behind_anything_that_may_stand_before_it() -> None:
    for before in (b"", b" \n", b"<!-- <a> -->", b"<?p <a?>\n<!-- - -->", b"<?xml version='1.0'?>"):
        with pytest.raises(BadXml, match="document type"):
            parse(before + b"<!DOCTYPE a><a/>")


def test_what_only_looks_like_a_document_type_is_text() -> None:
    root = parse(b"<a><![CDATA[<!DOCTYPE a>]]><!-- <!DOCTYPE b> --></a>")

    assert root.text == "<!DOCTYPE a>"


def test_comments_and_instructions_are_not_in_the_tree() -> None:
    root = parse(b"<?p?><a>ad<!-- x -->min<?p q?><b/></a><!-- y -->")

    assert root.text == "admin"
    assert [child.tag for child in root] == ["b"]
    assert root.getprevious() is None


@pytest.mark.parametrize("depth", [1, DEPTH_MAX, DEPTH_MAX + 1, 10_000])
@pytest.mark.parametrize("leaf", [b"", b"<b/>", b"<b></b>"])
def test_depth_has_a_limit(depth: int, leaf: bytes) -> None:
    document = b"<a>" * depth + leaf + b"</a>" * depth

    assert is_refused(document) == (depth + bool(leaf) > DEPTH_MAX)


def test_a_wide_document_is_not_deep() -> None:
    assert len(parse(b"<a>" + b"<b></b>" * 50_000 + b"</a>")) == 50_000


@pytest.mark.parametrize("declaration", ['a{}="="', "xmlns:a{}='u{}'", "a{} = '>'"])
def test_attributes_of_one_element_have_a_limit(declaration: str) -> None:
    def with_attributes(count: int) -> bytes:
        return f"<r>=<a {' '.join(declaration.format(n, n) for n in range(count))}/></r>".encode()

    assert not is_refused(with_attributes(ATTRIBUTES_MAX))
    with pytest.raises(BadXml, match="attributes"):
        parse(with_attributes(ATTRIBUTES_MAX + 1))


def test_a_piece_of_text_that_begins_as_a_tag_is_not_taken_for_one() -> None:
    pairs = " = " * (ATTRIBUTES_MAX + 1)

    assert not is_refused(f"<a><![CDATA[x <b'{pairs}> y]]></a>".encode())


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        (b" <?x?> <!-- <a/> --><b/>", b"<b/>"),
        (b"<!----><!-- never ends", b"<!-- never ends"),
        (b"<?x?><?never ends", b"<?never ends"),
        (b"<?x?><!DOCTYPE a>", b"<!DOCTYPE a>"),
        (b"<??>" * 5_000 + b"<b/>", b"<b/>"),
        (b"", b""),
    ],
)
def test_the_prolog_ends_before_the_first_thing_that_is_not_whole(data: bytes, rest: bytes) -> None:
    assert after_prolog(data) == rest


def test_many_equal_signs_are_not_many_attributes() -> None:
    assert not is_refused(b"<a>" + b"=" * 1_000 + b"<b c='" + b"=" * 1_000 + b"'/></a>")
    assert not is_refused(b"<a>" + b"<b c='d'/>" * 1_000 + b"</a>")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{}",
        b"<a>",
        b"<a/><b/>",
        b"<a>&e;</a>",
        b"<a>\xff</a>",
        b"<a>&#0;</a>",
        b"<p:a/>",
        b"\x1f\x8b" + zlib.compress(b"<a/>"),
        b"<?xml version='1.0' encoding='nonsense'?><a/>",
        b"<?xml version='1.0' encoding='unicode_escape'?><a/>",
        b"<?xml version='1.0' encoding='gb18030'?><a>\xff\xff</a>",
        b"<?xml?><a/>",
        b"<" + b"n" * 60_000 + b"/>",
        b"\xff\xfe<",
    ],
)
def test_what_is_not_well_formed_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(BadXml) as caught:
        parse(data, what="the message")

    assert caught.value.remedy
    assert len(caught.value.problem) < 400


encodings = st.sampled_from(
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso-8859-1"]
)


@given(text=st.text(st.characters(max_codepoint=255, exclude_categories=["C"])), encoding=encodings)
def test_every_encoding_gives_the_same_text(text: str, encoding: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    declared = "utf-8" if encoding == "utf-8-sig" else encoding.removesuffix("-le")
    document = f"<?xml version='1.0' encoding='{declared}'?><a>{escaped}</a>".encode(encoding)

    assert to_utf8(document) == f"<a>{escaped}</a>".encode()
    assert (parse(document).text or "") == text


@given(st.binary(max_size=60) | st.text("<>/='\" a?!-[]&;\x00", max_size=60).map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    is_refused(data)
    is_refused(b"<a>" + data + b"</a>")


@pytest.mark.parametrize(
    ("declared", "encoding", "charset"),
    [
        ("", "iso-8859-1", "ISO-8859-1"),
        ("", "windows-1252", "windows-1252"),
        ("", "shift_jis", "Shift_JIS"),
        ("", "utf-8", "utf-8"),
        ("utf-8", "iso-8859-1", "iso-8859-1"),
        ("iso-8859-1", "utf-8", "UTF-8"),
        ("iso-8859-1", "iso-8859-1", "utf-8"),  # plainly wrong: it is not UTF-8
        ("iso-8859-1", "iso-8859-1", "zip"),  # not known
        ("utf-16", "utf-16", "iso-8859-1"),  # a byte order mark is never wrong
        ("", "utf-8-sig", "iso-8859-1"),
    ],
)
def test_what_carries_a_document_may_say_how_it_is_encoded(
    declared: str, encoding: str, charset: str
) -> None:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    word = "\u30c6\u30b9\u30c8" if encoding == "shift_jis" else "gr\u00fc\u00df"
    sent = f"{declaration}<a>{word}</a>".encode(encoding)

    assert parse(carried_as(sent, charset)).text == word


def test_new_names_are_read_however_many_there_were_before() -> None:
    held = parse(b"<held><inside a='1'/></held>")
    finds = etree.XPath("//inside[@a = '1']")
    for number in range(5_000):  # 250 MB of names; libxml2 keeps some 100 MB of them
        parse(b"<n%d%b/>" % (number, b"x" * 49_990))

    later = parse(b"<a-name-that-nobody-used-yet><inside a='1'/></a-name-that-nobody-used-yet>")

    assert later.tag == "a-name-that-nobody-used-yet"
    assert len(finds(held)) == len(finds(later)) == 1
    assert parse(b"<held/>").tag == held.tag
