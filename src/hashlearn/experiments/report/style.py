"""The style sheet of the results page: one palette for light, one for dark, narrow screens, print.

Series colours s1 … s8 are Okabe and Ito's (https://jfly.uni-koeln.de/color/), darkened on light paper and lightened on
dark paper to a contrast of three to one; better and worse are blue-green and orange, which no common colour blindness
confuses. Nothing is said by colour alone.
"""

from __future__ import annotations

_LIGHT = """
  --ink: #1c2230; --dim: #596274; --paper: #fdfdfc; --card: #f4f5f7; --line: #e2e5ea; --link: #0a5c99;
  --better: #06606f; --better-paper: #dcf0f3; --within: #4a5365; --within-paper: #eceef2;
  --worse: #9c3b06; --worse-paper: #fce9dc;
  --s1: #0072b2; --s2: #d55e00; --s3: #00885f; --s4: #b8578c; --s5: #a87400; --s6: #3a93c7; --s7: #7a5cc0;
  --s8: #4a5365;
"""
_DARK = """
  --ink: #e5e8ef; --dim: #a5adbd; --paper: #12151b; --card: #1b2029; --line: #2d3441; --link: #7fc0f2;
  --better: #85d9e6; --better-paper: #10353d; --within: #bcc4d2; --within-paper: #272d38;
  --worse: #ffb68a; --worse-paper: #432716;
  --s1: #58b2ee; --s2: #ff8f4a; --s3: #35c795; --s4: #e59ac4; --s5: #e9b949; --s6: #a4d8f7; --s7: #b9a3f2;
  --s8: #bcc4d2;
"""

_TEXT = """
*, *::before { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 68rem; padding: 3.5rem clamp(1.1rem, 4vw, 3rem) 3rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word; }
a { color: var(--link); text-underline-offset: .18em; text-decoration-thickness: 1px; }
h1, h2, h3, h4 { line-height: 1.2; font-weight: 650; letter-spacing: -.012em; text-wrap: balance; }
h1 { font-size: clamp(1.75rem, 4.6vw, 2.6rem); letter-spacing: -.025em; margin: .3rem 0 1.4rem; max-width: 22em; }
h2 { font-size: 1.5rem; margin: 0 0 .6rem; }
h3 { font-size: 1.15rem; margin: 2.6rem 0 1rem; }
h3 small { display: block; margin-top: .35rem; font-size: .82rem; font-weight: 400; letter-spacing: 0;
  color: var(--dim); }
p { max-width: 44rem; margin: 0 0 1rem; color: var(--dim); }
.over { margin: 0; font-size: .82rem; letter-spacing: .02em; }
.lead { font-size: clamp(1.1rem, 2.6vw, 1.32rem); line-height: 1.45; color: var(--ink); max-width: 40rem; }
section[id] { margin-top: 4.5rem; padding-top: 2rem; border-top: 1px solid var(--line); }
nav { margin: 2rem 0 2.5rem; padding: 1.2rem 1.4rem; background: var(--card); border-radius: .6rem; }
nav h2 { font-size: .82rem; font-weight: 600; letter-spacing: .02em; color: var(--dim); }
nav ol { margin: 0; padding: 0; list-style: none; columns: 3 8.5rem; column-gap: 1.6rem; }
nav li { padding: .16rem 0; break-inside: avoid; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
small { font-size: .8rem; color: var(--dim); }
code, pre { font: .82rem/1.7 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { padding: 1rem 1.2rem; background: var(--card); border-radius: .6rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
pre code { display: block; padding: .1rem 0 .1rem 2ch; text-indent: -2ch; font-size: inherit; }
details { margin: .4rem 0; }
details[open] > summary { margin-bottom: .6rem; }
.part { margin: 0; border-top: 1px solid var(--line); }
.part:last-child { border-bottom: 1px solid var(--line); }
.part > summary { width: auto; padding: .8rem 0; }
.part[open] { padding-bottom: 1.6rem; }
summary { cursor: pointer; width: fit-content; max-width: 100%; padding: .3rem 0; color: var(--link); }
summary strong { font-weight: 600; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 3px; border-radius: .2rem; }
footer { margin-top: 4rem; border-top: 1px solid var(--line); padding-top: 1.2rem; font-size: .85rem; }
.facts { display: grid; grid-template-columns: minmax(7rem, auto) minmax(0, 1fr); gap: .25rem 1.4rem;
  margin: .8rem 0 1.6rem;
  font-size: .88rem; }
.facts dt { color: var(--dim); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.facts ul { margin: 0; padding: 0; list-style: none; }
"""

_TABLES = """
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .92rem; }
caption { text-align: left; padding: 0 0 .7rem; font-size: .85rem; color: var(--dim); }
caption strong { display: block; font-size: .95rem; font-weight: 600; color: var(--ink); }
th, td { padding: .55rem .7rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 550; }
thead th { font-size: .8rem; font-weight: 500; color: var(--dim); vertical-align: bottom;
  border-bottom-color: var(--dim); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
th[scope=row] { white-space: nowrap; }
.wide { overflow-x: auto; margin: 1.4rem 0 2rem; }
.wide td, .wide thead th { white-space: nowrap; }
.wide td.long { white-space: normal; text-align: left; min-width: 22rem; }
.by-length { margin: 1rem 0 2.2rem; }
.by-length th[scope=row] { padding-top: .6rem; }
.value { font-size: 1.06rem; }
.sd, .none { font-size: .82rem; color: var(--dim); }
.paper { display: block; font-size: .78rem; line-height: 1.5; color: var(--dim); }
.verdict { display: inline-block; margin-top: .12rem; padding: 0 .5em; border-radius: 1em; font-size: .76rem;
  line-height: 1.65;
  white-space: nowrap; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.verdict.better { color: var(--better); background: var(--better-paper); }
.verdict.within { color: var(--within); background: var(--within-paper); }
.verdict.worse { color: var(--worse); background: var(--worse-paper); }
p .verdict { margin: 0; }
[data-table=glance] :is(td, thead th), [data-table=missing] td { white-space: normal; }
[data-table=glance] small { display: block; font-weight: 400; overflow-wrap: anywhere; }
[data-table=glance] a { text-decoration-color: var(--line); }
[data-table=glance] td:last-child { width: 38%; }
.agreement { display: flex; gap: 2px; height: .5rem; margin: .45rem 0 .2rem; }
.agreement i { border-radius: 2px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.agreement .better { background: var(--better); }
.agreement .within { background: var(--within); opacity: .45; }
.agreement .worse { background: var(--worse); }
[data-table=missing] td, [data-table=cells] td:nth-child(-n+3), [data-table=configurations] td,
[data-table=configurations] th, [data-table=missing] th { text-align: left; }
.track { width: 18%; min-width: 5rem; vertical-align: middle; }
.bar { display: block; height: .5rem; min-width: 2px; border-radius: 2px; background: var(--s8); opacity: .7;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
[data-table=bits] :is(td, th[scope=row]) { vertical-align: middle; }
.strip-cell { display: inline-flex; align-items: center; gap: .6rem; }
.range { font-size: .78rem; color: var(--dim); }
"""

_FIGURES = """
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 2.4rem 2.6rem;
  margin: 1.4rem 0; }
figure { margin: 0; min-width: 0; }
.plot figcaption { font-size: .85rem; color: var(--dim); }
.plot figcaption strong { display: block; font-size: .92rem; font-weight: 600; color: var(--ink); }
.plot > svg { display: block; width: 100%; height: auto; margin-top: .5rem; overflow: visible; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.tick, .axis-title { fill: var(--dim); }
.label { font-weight: 600; }
.halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round; }
.grid { stroke: var(--line); fill: none; }
.axis { stroke: var(--dim); fill: none; }
.divider { stroke: var(--line); stroke-width: 1.5; stroke-dasharray: 2 3; fill: none; }
.between { fill: var(--within); opacity: .12; }
.line { stroke-linejoin: round; stroke-linecap: round; }
.whiskers { stroke-width: 1.2; opacity: .75; }
.leader { stroke-width: .8; opacity: .55; fill: none; }
.strip-frame { fill: none; stroke: var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: .45rem 0 0; padding: 0; list-style: none;
  font-size: .8rem;
  color: var(--dim); }
.swatch { width: 24px; height: 12px; margin-right: .45rem; vertical-align: -1px; }
.gallery > summary { color: var(--dim); }
.gallery > summary strong { color: var(--link); }
.query { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: 1rem 2rem; padding: 1.6rem 0;
  border-top: 1px solid var(--line); }
.query:first-of-type { border-top: 0; padding-top: .4rem; }
.query header img { width: 5.5rem; }
.query h4 small { display: block; font-weight: 400; letter-spacing: 0; }
.query h4 { margin: .5rem 0 0; font-size: .95rem; overflow-wrap: anywhere; }
.query img { display: block; height: auto; image-rendering: pixelated; border-radius: 3px; }
.found { display: grid; grid-template-columns: 8.5rem minmax(0, 1fr); gap: .4rem 1rem; margin-bottom: .9rem; }
.found p { margin: .5rem 0 0; font-size: .85rem; line-height: 1.3; color: var(--ink); }
.found p span { display: block; margin-left: calc(24px + .45rem); color: var(--dim); }
.neighbours { display: grid; grid-template-columns: repeat(8, minmax(0, 1fr)); gap: .5rem; }
.neighbours img { width: 100%; padding: 2px; border: 2px solid var(--better); background: var(--paper); }
.neighbours .other img { border: 2px dashed var(--worse); }
.neighbours figcaption { font-size: .7rem; line-height: 1.35; padding-top: .2rem; color: var(--dim); }
.neighbours figcaption b, .neighbours figcaption span { display: block; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; font-weight: 550; color: var(--better); }
.neighbours .other b { color: var(--worse); }
.neighbours figcaption span { font-weight: 400; color: var(--dim); }
"""

_NARROW = """
  body { padding-top: 2rem; }
  section[id] { margin-top: 3.2rem; padding-top: 1.6rem; }
  .by-length, .by-length caption, .by-length tbody, .by-length tr, .by-length td, .by-length th { display: block; }
  .by-length thead { display: none; }
  .by-length tr { display: grid; grid-template-columns: 1fr 1fr; gap: .7rem 1rem; padding: .8rem 0 1rem;
    border-bottom: 1px solid var(--line); }
  .by-length tr > th { grid-column: 1 / -1; border: 0; padding: 0; }
  .by-length tr > td { text-align: left; border: 0; padding: 0; }
  .by-length tr > td::before { content: attr(data-bits); display: block; font-size: .74rem; color: var(--dim); }
  th, td { padding-left: .45rem; padding-right: .45rem; }
  .wide th[scope=row] { position: sticky; left: 0; background: var(--paper); }
  .wide caption { width: calc(100vw - 2.4rem); position: sticky; left: 0; }
  [data-table=glance] { font-size: .85rem; }
  [data-table=glance] caption { width: auto; }
  [data-table=glance] th[scope=row] { white-space: normal; }
  [data-table=glance] :is(td, th):nth-child(2) { display: none; }
  .query { grid-template-columns: minmax(0, 1fr); }
  .query header { display: flex; align-items: center; gap: 1rem; }
  .found { grid-template-columns: minmax(0, 1fr); }
  .found p span { display: inline; margin: 0; }
  .neighbours { grid-template-columns: repeat(4, minmax(0, 1fr)); }
  svg text { font-size: 13px; }
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts dd { margin-bottom: .5rem; }
"""

_PRINT = """
  @page { margin: 16mm 14mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  section[id] { margin-top: 1.6rem; padding-top: 1rem; }
  h2, h3, h4, caption, summary, figcaption { break-after: avoid; }
  tr, figure, .found, .query header, pre { break-inside: avoid; }
  .plots { grid-template-columns: 1fr 1fr; gap: 1.2rem; }
  .wide { overflow: visible; }
  .wide table { font-size: 8pt; }
  .wide :is(td, td.long, th, thead th) { white-space: normal; min-width: 0; padding-left: .3rem; padding-right: .3rem; }
  a { color: inherit; text-decoration: none; }
  .part:not(.gallery)::details-content { content-visibility: visible; block-size: auto; }
  details:not([open]):not(.part), .gallery:not([open]) { display: none; }
"""

STYLE = (
    f":root {{ color-scheme: light dark;{_LIGHT}}}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{{_DARK}}} }}\n"
    f"{_TEXT}{_TABLES}{_FIGURES}"
    f"@media screen and (max-width: 640px) {{{_NARROW}}}\n"
    f"@media print {{{_PRINT}}}\n"
)
