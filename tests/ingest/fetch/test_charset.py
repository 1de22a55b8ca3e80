"""Text comes out as its author wrote it, whatever the labels say."""

from __future__ import annotations

import time

import pytest

from windrow.ingest.document import Resource
from windrow.ingest.fetch.charset import detect_charset, find_codec, is_text

RUSSIAN = (
    "Съешь ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных "
    "губерний даст мощный толчок подъёму сельского хозяйства."
)
CHINESE = (
    "北京大学是中国近代第一所国立综合性大学，创办于1898年，初名京师大学堂，成立之初为中国最高学府。"
)
JAPANESE = (
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
    "何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。"
)
FRENCH = "Dès Noël où un zéphyr haï me vêt de glaçons würmiens je dîne d’exquis rôtis."


@pytest.mark.parametrize(
    ("text", "encoding", "header", "meta"),
    [
        (RUSSIAN, "windows-1251", "text/html; charset=windows-1251", ""),
        (RUSSIAN, "windows-1251", "text/html", "windows-1251"),
        (RUSSIAN, "windows-1251", "text/html", ""),
        (RUSSIAN, "windows-1251", "text/html; charset=utf-8", "windows-1251"),
        (RUSSIAN, "windows-1251", "text/html; charset=utf-8", ""),
        (RUSSIAN, "koi8-r", "text/html; charset=KOI8-R", ""),
        (CHINESE, "gb18030", "text/html; charset=gb2312", ""),
        (CHINESE, "gb18030", "text/html", "GBK"),
        (CHINESE, "gb18030", "text/html", ""),
        (JAPANESE, "cp932", "text/html; charset=Shift_JIS", ""),
        (JAPANESE, "cp932", "text/html", "x-sjis"),
        (JAPANESE, "cp932", "text/html", ""),
        (JAPANESE, "euc_jp", 'text/html; charset="EUC-JP"', ""),
        (FRENCH, "cp1252", "text/html; charset=iso-8859-1", ""),
        (FRENCH, "utf-8", "text/html; charset=iso-8859-1", ""),
        (FRENCH, "utf-8", "text/html", ""),
        (FRENCH, "utf-8", "text/html; charset=nonsense", "utf8"),
        (FRENCH, "utf-8", "text/html", "utf-16"),
        (FRENCH, "utf-8-sig", "text/html; charset=windows-1251", ""),
        (FRENCH, "utf-16", "text/html; charset=utf-8", ""),
        (FRENCH, "utf-8", "text/html; charset=utf-7", ""),
    ],
)
def test_text_is_read_as_it_was_written(text: str, encoding: str, header: str, meta: str) -> None:
    tag = f'<meta http-equiv="Content-Type" content="text/html; charset={meta}">' if meta else ""
    page = f"<html><head>{tag}<title>{text}</title></head><body><p>{text}</p></body></html>"
    body = page.encode(encoding)
    assert _read(body, header) == page


def test_a_broken_place_does_not_spoil_the_rest() -> None:
    body = f"<p>{RUSSIAN}</p>".encode().replace("чаю".encode(), b"\xff\xfe")
    for header in ("text/html", "text/html; charset=utf-8"):
        assert _read(body, header) == f"<p>{RUSSIAN}</p>".replace("чаю", "\ufffd\ufffd")
    cut = f"<p>{RUSSIAN}".encode()[:-1]
    assert _read(cut, "text/html").startswith(f"<p>{RUSSIAN[:-2]}")


def test_xml_and_css_say_it_in_their_own_way() -> None:
    xml = f'<?xml version="1.0" encoding="windows-1251"?><a>{RUSSIAN}</a>'
    assert _read(xml.encode("windows-1251"), "application/xml") == xml
    css = f'@charset "shift_jis"; /* {JAPANESE} */'
    assert _read(css.encode("shift_jis"), "text/css") == css


@pytest.mark.parametrize("label", ["utf-7", "idna", "rot13", "hex", "x" * 300, "a\0b", ""])
def test_codecs_that_are_no_charsets_of_the_web_are_not_used(label: str) -> None:
    assert find_codec(label) is None


def test_what_is_text_is_told_by_its_type() -> None:
    texts = ["text/html", "application/json", "application/ld+json", "image/svg+xml", ""]
    assert all(is_text(kind) for kind in [*texts, "application/x-javascript", "text/x-anything"])
    others = ["image/png", "application/pdf", "application/octet-stream", "video/mp4"]
    assert not any(is_text(kind) for kind in others)


# A sentence or two as it would stand on a page, in charsets that such pages were written in.
UNLABELLED = [
    ("cp1251", RUSSIAN),
    ("koi8_r", RUSSIAN),
    ("gb18030", CHINESE),
    ("big5", "臺灣大學是一所位於臺北市的國立大學，其前身為日治時期的臺北帝國大學。"),
    ("cp932", JAPANESE),
    ("euc_jp", JAPANESE),
    ("cp949", "대한민국은 동아시아의 한반도 남부에 위치한 나라이다. 수도는 서울특별시이다."),
    ("cp1252", FRENCH),
    ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy. Česká republika leží ve střední Evropě."),
    ("cp1253", "Η Ελλάδα είναι χώρα της νοτιοανατολικής Ευρώπης. Η Αθήνα είναι η πρωτεύουσα."),
    ("cp1255", "מדינת ישראל היא מדינה במזרח התיכון. בירתה של ישראל היא ירושלים."),
    ("cp1256", "الجمهورية العربية المصرية دولة عربية تقع في الركن الشمالي الشرقي من قارة أفريقيا."),
    ("cp874", "ประเทศไทยเป็นรัฐชาติในภูมิภาคเอเชียตะวันออกเฉียงใต้ กรุงเทพมหานครเป็นเมืองหลวง"),
    ("cp1252", "Les élèves étudient à l’école, où ils lisent des livres très intéressants."),
    ("cp1252", "Åsa köpte två äpplen på torget i Göteborg. Därefter gick hon hem igen."),
    ("cp1252", "A educação é um direito de todos. As crianças não vão à escola aos sábados."),
    ("cp1250", "Rzeczpospolita Polska leży w Europie Środkowej, między Bałtykiem a Sudetami."),
    (
        "cp1254",
        "Türkiye bir ülkedir. İstanbul en kalabalık şehirdir ve çok güzel bir yerdir.",
    ),
]


@pytest.mark.parametrize(("encoding", "text"), UNLABELLED)
def test_a_page_without_any_label_is_guessed_right(encoding: str, text: str) -> None:
    page = f"<html><body><div class=a><p>{text}</p></div></body></html>"
    assert _read(page.encode(encoding), "text/html") == page


@pytest.mark.parametrize(
    "body",
    [b"\xe9\n" * 5_000_000, b"\xff" * 10_000_000, bytes(range(256)) * 40_000, b"<meta " * 500_000],
    ids=["many lines", "nothing but broken", "noise", "meta after meta"],
)
def test_no_body_takes_long_to_judge(body: bytes) -> None:
    for header in ("text/html", "text/html; charset=utf-8"):
        before = time.process_time()
        detect_charset(body, header)
        assert time.process_time() - before < 1


def test_what_says_nothing_of_itself_is_text_unless_the_bytes_tell_otherwise() -> None:
    assert is_text("", b"hello")
    assert is_text("", "hello".encode("utf-16"))
    assert not is_text("", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")


def test_a_large_page_without_labels_is_judged_by_a_part_of_it() -> None:
    line = f"<p>{RUSSIAN}</p>\n"
    body = ("<div class=x></div>\n" * 200_000 + line * 2_000).encode("windows-1251")
    assert _read(body, "text/html").endswith(line)


def _read(body: bytes, header: str) -> str:
    charset = detect_charset(body, header)
    return Resource("u", "u", 200, body, "text/html", charset).text()
