"""Pages that say "not found" with a status that says "found".

Each sign counts for something, and one alone is never enough: what the title and the first heading
say as a whole, what the first lines say, and how little else there is. A long page is about
something, if only about pages that are not found.
"""

from __future__ import annotations

import re

from windrow.ingest.document import Document

ENOUGH = 4  # points
FIRST_CHARACTERS = 1_000  # in which such a page says what it is
SHORT_CHARACTERS = 400
LONG_CHARACTERS = 1_800
VERY_LONG_CHARACTERS = 5_000

# What stands alone as the title, the heading, or a part of them, on such pages only.
_NAMES = re.compile(
    r"(?:http |error |fehler |erreur |código |errore )*(?:code )?404(?: error| fehler)?"
    r"(?:[ :,.–—-]*(?:not found|error|page not found|seite nicht gefunden|file not found))*"
    r"|(?:the )?(?:requested )?(?:page|file|document|resource|url|content) (?:was |is )?not found"
    r"|not found|nothing found here|page (?:does not|doesn['’]t) exist"
    r"|page (?:is )?(?:missing|gone)"
    r"|page (?:no longer |un|not )available|this page is(?:n['’]t| not) available"
    r"|oops|sorry|uh oh|whoops|(?:we can|that page can)['’]?t (?:find that page|be found)"
    r"|seite (?:wurde )?nicht gefunden|page (?:non trouvée|introuvable)|página no encontrada"
    r"|pagina non trovata|página não encontrada|pagina niet gevonden"
    r"|sidan (?:kunde inte hittas|hittades inte)|siden (?:ble|blev) ikke fundet"
    r"|strony nie znaleziono|nie znaleziono strony"
    r"|страница не найдена|сторінку не знайдено|ページが見つかりません"
    r"|页面不存在|找不到页面|頁面不存在"
    r"|페이지를 찾을 수 없습니다|الصفحة غير موجودة|הדף לא נמצא|sayfa bulunamadı"
)
# What their first lines say.
_PHRASES = re.compile(
    r"page (?:that )?(?:you(?:['’]re| are| were)?|you have) (?:looking for|request\w*|try\w* to)"
    r"|(?:could|can) ?(?:not|n['’]t|['’]t) (?:be found|find (?:the|that|this|what)\b)"
    r"|(?:does not|doesn['’]t|no longer) (?:exist|available)"
    r"|(?:is|are) no longer available|(?:been|was) (?:moved|removed|deleted|renamed)"
    r"|(?:moved|removed|deleted) or (?:no longer|renamed|deleted|moved|never)"
    r"|(?:go |return |back )+to (?:the )?(?:home|main|front|start)"
    r"|check the (?:url|address|spelling)|(?:mis)?typed the (?:url|address)|broken link"
    r"|was not found on this server"
    r"|(?:existiert|gibt es) (?:leider )?nicht|nicht gefunden werden|zur startseite"
    r"|n['’]existe (?:pas|plus)|n['’]a pas été trouvée|retour à l['’]accueil"
    r"|no existe|volver al inicio|non esiste|não existe|bestaat niet|finns inte|finnes ikke"
    r"|не существует|была удалена|на главную"
    r"|見つかりませんでした|削除された|不存在|已被删除|返回首页"
    r"|찾을 수 없|غير موجودة|bulunamadı|nie istnieje"
)
_SEPARATORS = re.compile(r"\s+[|·–—»:-]+\s+|\s*[|｜»]\s*|:\s+")
_SIGH = re.compile(r"^(?:oops|sorry|whoops|uh oh)[!,. ]+")
_HEADING = re.compile(r"^\s*#{1,3}\s+(.+)$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def is_soft_404(document: Document) -> bool:
    """Whether this page, fetched well, says that there is no such page."""
    if not 200 <= document.metadata.status_code < 300:
        return False
    return points(document.title or "", document.markdown or "") >= ENOUGH


def points(title: str, markdown: str) -> int:
    """How much speaks for it."""
    text = _LINK.sub(r"\1", markdown)
    heading = _HEADING.search(text[:FIRST_CHARACTERS])
    phrases = {found.group() for found in _PHRASES.finditer(text[:FIRST_CHARACTERS].lower())}
    named = 3 * _is_named(title) + 3 * _is_named(heading[1] if heading else text.strip()[:60])
    if not named:
        return 0  # pages about what was moved or removed say so too
    return named + 2 * min(2, len(phrases)) + _for_length(len(text))


def _is_named(line: str) -> bool:
    """Whether a part of it is, as a whole, the name of such a page."""
    parts = [part.strip(" *_`!.?#\n").lower() for part in [line, *_SEPARATORS.split(line)]]
    return any(part and _NAMES.fullmatch(_SIGH.sub("", part) or part) for part in parts)


def _for_length(characters: int) -> int:
    if characters > VERY_LONG_CHARACTERS:
        return -9
    if characters > LONG_CHARACTERS:
        return -4
    return 1 if characters <= SHORT_CHARACTERS else 0
