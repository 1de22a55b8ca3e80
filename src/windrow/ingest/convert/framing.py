"""How pages name what frames their content, and the content itself: selectors and words, no code.

A name is a whole class or id, compared without case: `sidebar` is not `layout-with-sidebar`.
"""

from __future__ import annotations

# Elements that frame a page, wherever they are, and those that say of themselves that they do.
FRAMES = """
    nav, dialog, menu, header, footer, aside, [aria-modal='true'], span.mw-editsection,
    span.sr-only, span.visually-hidden, span.screen-reader-text
"""
_ROLES_OF_FRAMES = """
    navigation banner contentinfo search menu menubar toolbar dialog alertdialog tooltip
"""

_NAMES_OF_FRAMES = """
    header site-header page-header masthead top-bar topbar banner site-banner announcement-bar
    nav navbar nav-bar navigation navigation-bar main-nav main-navigation site-nav menu main-menu
    mega-menu breadcrumb breadcrumbs pagination pager page-nav prev-next post-navigation nav-links
    footer site-footer page-footer colophon copyright
    sidebar side-bar sidenav side-nav sidebar-wrapper left-sidebar right-sidebar widget-area widget
    widgets toc table-of-contents
    related related-posts related-articles related-links related-products recommended
    recommendations more-stories you-may-also-like
    share sharing share-buttons social social-share social-media social-links social-icons
    sharedaddy addtoany_share_save_container
    cookie cookies cookie-banner cookie-consent cookie-notice cookie-bar cookieconsent cc-window
    gdpr gdpr-banner consent consent-banner onetrust-consent-sdk onetrust-banner-sdk
    newsletter newsletter-signup subscribe subscription signup-form popup modal overlay lightbox
    toast promo promotion paywall comment-respond post-menu sitenotice
    skip-link skip-to-content skiplink skip-nav screen-reader-text sr-only visually-hidden
    edit-link edit-this-page editsection print-link printfriendly back-to-top backtotop scroll-top
    language-selector lang-switcher search searchbox search-box search-form
    sphinxsidebar sphinxsidebarwrapper
    md-header md-tabs md-footer md-sidebar md-source-file md-skip md-announce md-content__button
    theme-doc-toc-mobile theme-doc-toc-desktop theme-doc-breadcrumbs theme-edit-this-page
    theme-doc-footer pagination-nav table-of-contents__left-border
    navheader navfooter
    mw-editsection mw-jump-link catlinks printfooter noprint navbox vector-menu mw-indicators
"""

# What people call a remark that belongs to the text, which `aside` is also used for.
_NAMES_OF_CALLOUTS = """
    note tip hint warning caution danger important info admonition callout footnote footnotes
    footnote-list endnotes sidenote marginnote starlight-aside pullquote
"""

# Buttons and marks beside the text.
TRIMMINGS = """
    a.headerlink, a.hash-link, a.anchor, a.anchorjs-link, a.id_link, .copybtn, .copy-button,
    .clipboard-copy, .linenos, .linenodiv, .lineno, td.gutter, .line-numbers-rows, select, textarea,
    input:not(.task-list-item-checkbox):not(.task-list-item > input), button, progress, meter
"""

# What pages call their main part, the surest first.
MAIN_PARTS = (
    "main, [role='main']",
    "article, [itemprop='articleBody'], .h-entry, .hentry",
    """
    #main-content, #mw-content-text, #content, #main, #docContent, #bodyContent, .post-content,
    .entry-content, .article-content, .article-body, .markdown-body, .main-content, .page-content,
    .content, .body
    """,
)

FRAME_ROLES = frozenset(_ROLES_OF_FRAMES.split())
FRAME_NAMES = frozenset(_NAMES_OF_FRAMES.split())
CALLOUT_NAMES = frozenset(_NAMES_OF_CALLOUTS.split())
