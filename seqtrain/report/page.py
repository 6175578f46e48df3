"""The page itself: sections in order, one style sheet, one script that sorts tables."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from seqtrain.report import sections
from seqtrain.report.facts import RunFacts
from seqtrain.report.markup import Content, Markup, element

STYLE = """
:root{color-scheme:light dark;
--ink:#1b1f24;--soft:#5b6570;--page:#fff;--panel:#f5f7f9;--rule:#d8dee4;
--s0:#2563a8;--s1:#c2571a;--s2:#2f8f5b;--s3:#8a4fbf;--s4:#b0325f;--s5:#6b7280;
--right:37,99,168;--wrong:194,87,26}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa4ae;--page:#14171a;--panel:#1d2125;
--rule:#343a40;--s0:#6aa5e6;--s1:#ee9360;--s2:#6bc793;--s3:#b98ae6;--s4:#ea7ba2;--s5:#a3adb8;
--right:106,165,230;--wrong:238,147,96}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .5rem}
h1,h2,p,dt,figcaption{overflow-wrap:anywhere}
p{max-width:44rem;color:var(--soft)}
.figures{display:flex;flex-wrap:wrap;gap:.75rem}
.figures div{background:var(--panel);border-radius:.5rem;padding:.5rem 1rem;min-width:6.5rem}
.figures b{display:block;font-size:1.25rem}.figures span{color:var(--soft);font-size:.85rem}
dl{display:grid;grid-template-columns:minmax(7rem,auto) minmax(50%,1fr);
gap:.15rem 1rem;font-size:.9rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1rem}
figure{margin:0;max-width:30rem}figcaption{font-size:.9rem;color:var(--soft)}
svg{width:100%;height:auto;display:block}
svg text{fill:var(--soft);font-size:11px}.middle{text-anchor:middle}.end{text-anchor:end}
.grid{stroke:var(--rule);stroke-width:1}.diagonal{stroke:var(--soft);stroke-dasharray:3 3}
.line{fill:none;stroke:var(--c);stroke-width:2}.line.dashed{stroke-dasharray:5 4}
circle,rect{fill:var(--c);fill-opacity:.75}
.s0{--c:var(--s0)}.s1{--c:var(--s1)}.s2{--c:var(--s2)}.s3{--c:var(--s3)}.s4{--c:var(--s4)}.s5{--c:var(--s5)}
.key{display:inline-block;font-size:.8rem;margin:0 1rem .3rem 0}
.key{border-bottom:3px solid var(--c);overflow-wrap:anywhere}
.key.dashed{border-bottom-style:dashed}
.wide{overflow:auto;max-height:36rem}
table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--rule);vertical-align:top}
th:first-child,td:first-child,.words{text-align:left}
td:first-child,.words{min-width:6rem;max-width:28rem;overflow-wrap:anywhere}
.sortable th{cursor:pointer;text-decoration:underline dotted}
pre{overflow-x:auto;background:var(--panel);padding:.75rem;font-size:.85rem}
@media print{body{max-width:none;font-size:11px}details{display:none}.wide{max-height:none}
figure,tr{break-inside:avoid-page}}
"""
SHADES = "".join(
    f".{name}{step}{{background:rgba(var(--{name}),{0.08 + 0.07 * step:.2f})}}"
    for name in ("right", "wrong")
    for step in range(10)
)
SCRIPT = """
for(const head of document.querySelectorAll('.sortable th'))head.onclick=()=>{
const at=head.cellIndex,body=head.closest('table').tBodies[0],up=head.dataset.up!=='1';
head.dataset.up=up?'1':'0';
const key=row=>{const text=row.cells[at].textContent,number=parseFloat(text.replace(/,/g,''));
return isNaN(number)?text:number};
[...body.rows].sort((a,b)=>{const x=key(a),y=key(b);
return(x<y?-1:x>y?1:0)*(up?1:-1)}).forEach(row=>body.append(row))};
"""


def render(runs: Sequence[RunFacts], *, title: str) -> str:
    """Return the page for one run, or for several side by side.

    Args:
        runs: at least one.
        title: of the page.

    Returns:
        One HTML document that loads nothing from elsewhere; its policy forbids it to.
    """
    parts: list[Content] = [element("h1", title)]
    if len(runs) > 1:
        parts.append(sections.comparison(runs))
        parts.append(sections.curves(runs))
    for run in runs:
        parts += [
            sections.card(run),
            sections.curves([run]) if len(runs) == 1 else None,
            sections.per_class(run),
            sections.confusions(run),
            sections.reliability(run),
            sections.by_length(run),
            sections.errors(run),
            sections.details(run),
        ]
    return f"<!doctype html>\n{_document(title, parts)}\n"


def _document(title: str, parts: Sequence[Content]) -> Markup:
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(STYLE + SHADES)),
    )
    body = element("body", element("main", parts), element("script", Markup(SCRIPT)))
    return element("html", head, body, lang="en")
