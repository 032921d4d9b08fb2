/** The look of the report: light and dark, narrow and wide, on paper too. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #ffffff; --ink: #1c2024; --soft: #5a636d; --line: #dfe3e6; --grid: #e9ecee;
  --good: #17703f; --good-page: #e4f4ea; --bad: #a5281b; --bad-page: #fdeae7; --doubt: #7a5600; --doubt-page: #fdf3d8;
  --c0: #1f62d0; --c1: #c2541b; --c2: #137a5a; --c3: #8a3ab0; --c4: #8a6a00; --c5: #52606d; --c6: #b8295e; --c7: #00707f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181b; --card: #1d2125; --ink: #e8eaed; --soft: #a3adb7; --line: #363d44; --grid: #2b3137;
    --good: #7bd8a0; --good-page: #163323; --bad: #ff9d8f; --bad-page: #40201c; --doubt: #f0cc6b; --doubt-page: #3a2f12;
    --c0: #7fb0ff; --c1: #ff9f68; --c2: #5fd3aa; --c3: #d59bf2; --c4: #e3c04c; --c5: #aab6c2; --c6: #ff8fb5; --c7: #5fd0de;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
header, main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem; }
header { padding-bottom: 0; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .75rem; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p { margin: .25rem 0; max-width: 72ch; }
a { color: var(--c0); }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 0 1rem; }
dl.facts dt { color: var(--soft); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .4rem; list-style: none; padding: 0; margin: .5rem 0 0; }
nav a { display: block; padding: .2rem .65rem; border: 1px solid var(--line); border-radius: 1rem; background: var(--card); color: var(--ink); text-decoration: none; font-size: .9rem; }
nav a:hover, nav a:focus-visible { border-color: var(--c0); }
nav a.failed { color: var(--bad); border-color: var(--bad); }
:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1.1rem 1.2rem; margin: 0 0 1.25rem; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
table.figures th:not(:first-child), table.figures td { text-align: right; white-space: nowrap; padding-right: 0; padding-left: .9rem; }
thead th { color: var(--soft); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 500; min-width: 8rem; }
tbody tr:last-child > * { border-bottom: 0; }
.chip { display: inline-block; border-radius: 1rem; padding: .05rem .6rem; font-size: .85rem; white-space: nowrap; background: var(--grid); color: var(--soft); }
.chip.met { background: var(--good-page); color: var(--good); }
.chip.missed { background: var(--bad-page); color: var(--bad); }
.chip.doubt { background: var(--doubt-page); color: var(--doubt); }
ul.warnings, ul.notes { padding: .6rem .8rem .6rem 1.9rem; margin: .75rem 0; font-size: .9rem; overflow-wrap: anywhere; }
ul.warnings { background: var(--doubt-page); color: var(--doubt); border-radius: .4rem; }
ul.notes { padding-left: 1.1rem; padding-top: 0; color: var(--soft); }
p.failure { background: var(--bad-page); color: var(--bad); border-radius: .4rem; padding: .6rem .8rem; max-width: none; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1rem 2rem; margin: 1rem 0; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 500; font-size: .95rem; margin-bottom: .25rem; }
figcaption .unit { color: var(--soft); font-weight: 400; }
figure > svg { display: block; width: 100%; height: auto; }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem 1rem; padding: 0; margin: .25rem 0 0; font-size: .85rem; color: var(--soft); }
ul.legend li { display: flex; align-items: center; gap: .4rem; }
svg text { font: 11.5px system-ui, sans-serif; fill: var(--soft); }
svg text.row { font-size: 12.5px; fill: var(--ink); }
svg .grid { stroke: var(--grid); }
svg .one { stroke: var(--soft); stroke-dasharray: 2 3; }
svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .dot { stroke: none; }
svg line.rate, svg circle.rate { stroke: var(--c0); stroke-width: 3; fill: var(--c0); }
svg line.time, svg circle.time { stroke: var(--c1); stroke-width: 3; fill: var(--c1); }
svg .goal { stroke: var(--ink); stroke-width: 3; }
${Array.from({ length: 8 }, (_, index) => `svg .line.c${index} { stroke: var(--c${index}); } svg .dot.c${index} { fill: var(--c${index}); }`).join('\n')}
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
@media (max-width: 40rem) {
  dl.facts { grid-template-columns: 1fr; gap: 0; }
  dl.facts dd { margin-bottom: .4rem; }
  section { padding: .9rem .8rem; }
  /* A row is a block: columns would hide what they say behind the edge. */
  .scroll table, .scroll tbody, .scroll tr, .scroll tbody th { display: block; }
  .scroll thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .scroll tr { padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .scroll tr:last-child { border-bottom: 0; }
  .scroll th, .scroll tbody td, table.figures td { border: 0; padding: .1rem 0; text-align: left; white-space: normal; }
  .scroll tbody td { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .75rem; overflow-wrap: anywhere; }
  .scroll tbody td:empty { display: none; }
  .scroll tbody td::before { content: attr(data-title); color: var(--soft); }
  .chip { white-space: normal; justify-self: start; }
}
@media print { section { break-inside: avoid; } nav { display: none; } }
`;
