"""The look of the report: one style sheet, light and dark, nothing loaded from anywhere."""

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b2430; --soft: #586474; --line: #dbe0e7;
  --tint: #f5f7fa; --ok: #17753f; --bad: #bd1f2d; --open: #8a5a00; --link: #1f5fb4;
  --oktint: #e9f6ee; --badtint: #fdeeee; --opentint: #fdf4e0; --edge: #f0a5a9;
  --c0: #2563b8; --c1: #b8500a; --c2: #17753f; --c3: #8237ad; --c4: #ad1f66; --c5: #586474; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e4e8ee;
  --soft: #9ca8b8; --line: #323b48; --tint: #1a2029; --ok: #4cc38a; --bad: #ff8078; --open: #e3b341;
  --link: #7ab0ff; --oktint: #12281d; --badtint: #331a1c; --opentint: #2c2412; --edge: #8f3f42;
  --c0: #6ea8ff; --c1: #ffa657; --c2: #4cc38a; --c3: #d2a8ff; --c4: #ff9bce; --c5: #9ca8b8; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0 auto; max-width: 1120px; padding: 24px 20px 60px; background: var(--paper);
  color: var(--ink); overflow-wrap: anywhere;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
h1 { font-size: 16px; margin: 0; color: var(--soft); letter-spacing: .02em; }
h2 { font-size: 23px; margin: 44px 0 12px; line-height: 1.25; }
h3 { font-size: 18px; margin: 36px 0 10px; padding-top: 4px; }
h4 { font-size: 15px; margin: 20px 0 6px; } p { margin: 6px 0; }
a { color: var(--link); } :focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -9999px; } .skip:focus { position: static; }
.soft { color: var(--soft); } footer { margin-top: 48px; color: var(--soft); font-size: 13px; }
code { font: 13px/1.4 ui-monospace, Menlo, Consolas, "Liberation Mono", monospace;
  unicode-bidi: isolate; }
.banner { display: flex; gap: 18px; align-items: center; border: 1px solid var(--line);
  border-radius: 12px; padding: 16px 20px; margin: 12px 0 20px; background: var(--tint); }
.banner p { margin: 0; } .headline { font-size: 22px; font-weight: 650; line-height: 1.3; }
.bigsign { flex: none; width: 52px; height: 52px; border-radius: 50%; font-size: 28px;
  line-height: 52px; text-align: center; font-weight: 700; color: var(--paper); }
.banner.ok { background: var(--oktint); border-color: var(--ok); }
.banner.violated { background: var(--badtint); border-color: var(--bad); }
.banner.inconclusive { background: var(--opentint); border-color: var(--open); }
.ok .bigsign { background: var(--ok); } .violated .bigsign { background: var(--bad); }
.inconclusive .bigsign { background: var(--open); }
.proportions { display: flex; gap: 2px; height: 14px; border-radius: 7px; overflow: hidden; }
.proportions span { min-width: 4px; } .proportions .ok { background: var(--ok); }
.proportions .violated { background: var(--bad); }
.proportions .inconclusive { background: var(--open); }
.facts { display: flex; flex-wrap: wrap; gap: 8px 28px; padding: 0; list-style: none;
  margin: 12px 0; color: var(--soft); }
.facts b { display: block; font-size: 22px; line-height: 1.2; color: var(--ink);
  font-variant-numeric: tabular-nums; }
nav { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 14px 0; padding: 8px 0;
  border: solid var(--line); border-width: 1px 0; }
.run { border-top: 3px solid var(--line); margin-top: 44px; } .run > h2 { margin-top: 20px; }
.banner + .run { border-top: 0; margin-top: 0; }
.remark { border-left: 4px solid var(--open); padding: 4px 12px; background: var(--opentint); }
.fine { color: var(--ok); font-weight: 600; }
.scroll { overflow-x: auto; border-radius: 4px; background:
  linear-gradient(to right, var(--paper) 40%, transparent) left / 36px 100% no-repeat local,
  linear-gradient(to left, var(--paper) 40%, transparent) right / 36px 100% no-repeat local,
  linear-gradient(to right, var(--line), transparent) left / 12px 100% no-repeat scroll,
  linear-gradient(to left, var(--line), transparent) right / 12px 100% no-repeat scroll; }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 13px; white-space: nowrap; }
th, td { padding: 6px 18px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; } tbody tr:last-child td { border-bottom: 0; }
td { max-width: 26em; overflow-wrap: anywhere; }
@media screen { td { min-width: 4.5em; } td:first-child { min-width: 7em; }
  .wordy td { min-width: 9em; }
  .expected td:nth-child(2), .verdicts td:first-child { min-width: 15em; }
  .expected td:nth-child(3) { min-width: 11em; } }
.verdicts td:nth-child(2), .verdicts td:nth-child(3) { width: 11em; }
.dense td, .dense th { font-size: 13px; padding: 4px 10px 4px 0; } .dense td { min-width: 0; }
.dense td:nth-child(2):not(.number) { min-width: 5em; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
.property { white-space: nowrap; color: var(--soft); }
.counted, .verdict { white-space: nowrap; } .verdict { font-weight: 600; }
h2 .verdict { font-size: 16px; padding-left: 10px; }
.verdict.ok { color: var(--ok); } .verdict.violated { color: var(--bad); }
.verdict.inconclusive { color: var(--open); } .verdict.na { color: var(--soft); font-weight: 400; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 480px), 1fr));
  gap: 14px; margin: 14px 0; align-items: start; }
.card.wide { grid-column: 1 / -1; }
.card { min-width: 0; border: 1px solid var(--line); border-left: 4px solid var(--bad);
  border-radius: 8px; padding: 12px 16px; }
.sentence { font-size: 16px; font-weight: 600; }
.sentence summary { color: var(--ink); } .sentence p { font-weight: 400; }
.tags { color: var(--soft); } .tag, .chip { background: var(--tint); border-radius: 4px;
  border: 1px solid var(--line); padding: 1px 6px; } .tag { font-size: 12px; }
.chip.odd { border-color: var(--bad); color: var(--bad); }
.steps { line-height: 2; } .steps > .soft { display: block; font-size: 13px; }
.step { white-space: nowrap; color: var(--bad); padding: 0 8px; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 14px; margin: 8px 0; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; }
.names dt { max-width: 45vw; } .names { font-size: 13px; }
details { margin: 10px 0; } summary { cursor: pointer; color: var(--link); }
pre { white-space: pre-wrap; background: var(--tint); padding: 10px; border-radius: 6px;
  font: 12px/1.4 ui-monospace, Menlo, Consolas, "Liberation Mono", monospace; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; align-items: center; font-size: 13px; }
.legend > span { display: inline-flex; align-items: center; gap: 4px; }
.sign { width: 30px; height: 24px; }
svg text { fill: var(--ink); font: 12px system-ui, "Liberation Sans", sans-serif; }
.card .diagram { display: block; margin: 4px 0; }
svg.diagram text { font: 12px ui-monospace, Menlo, "Liberation Mono", monospace;
  unicode-bidi: isolate; }
.diagram .process { fill: none; stroke: var(--soft); stroke-width: 1.2; }
svg.diagram .name { font-weight: 700; }
.diagram .label { text-anchor: middle; paint-order: stroke; stroke: var(--paper);
  stroke-width: 4px; stroke-linejoin: round; }
.diagram .broken { fill: var(--bad); font-weight: 700; }
svg.diagram .edgename { fill: var(--bad); font-weight: 700; }
.m0 { --m: var(--c0); } .m1 { --m: var(--c1); } .m2 { --m: var(--c2); } .m3 { --m: var(--c3); }
.m4 { --m: var(--c4); } .m5 { --m: var(--c5); }
.diagram .send { fill: var(--paper); stroke: var(--m); stroke-width: 2.5; }
.diagram .deliver { fill: var(--m); stroke: var(--m); stroke-width: 2.5; }
.diagram .mark { fill: var(--ink); } .diagram .head { fill: var(--m); }
.diagram .ring { fill: var(--paper); stroke: var(--bad); stroke-width: 2.5; }
.diagram .message, .diagram .absent { fill: none; stroke: var(--m); stroke-width: 1.6; }
.diagram .absent { stroke-dasharray: 5 4; }
.diagram .cross { fill: none; stroke: var(--bad); stroke-width: 3; stroke-linecap: round; }
.diagram .edge { fill: none; stroke: var(--edge); stroke-width: 5; }
.diagram .edgehead { fill: var(--bad); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr));
  gap: 8px 40px; } figure { margin: 0; min-width: 0; }
.plot { display: block; width: 100%; max-width: 560px; height: auto; }
.plot .grid { stroke: var(--line); fill: none; }
svg.plot text { fill: var(--soft); font-size: 12px; }
.plot .right { text-anchor: end; } .plot .middle { text-anchor: middle; }
.area { fill: var(--c0); opacity: .14; stroke: none; }
.curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
.swatch { width: 34px; height: 10px; }
.curve0 { stroke: var(--c0); } .curve1 { stroke: var(--c1); stroke-dasharray: 9 4; }
.curve2 { stroke: var(--c2); stroke-dasharray: 3 3; }
.curve3 { stroke: var(--c3); stroke-dasharray: 12 4 3 4; }
.curve4 { stroke: var(--c4); stroke-dasharray: 6 6; } .curve5 { stroke: var(--c5); }
.bars { list-style: none; padding: 0; margin: 10px 0; max-width: 560px; }
.bars li { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 12px;
  margin: 8px 0; } .barvalue { font-variant-numeric: tabular-nums; color: var(--soft); }
.bar { display: flex; flex: 0 0 100%; height: 14px; background: var(--tint); border-radius: 3px;
  overflow: hidden; } .header { background: var(--c1); } .body { background: var(--c0); }
.key { display: inline-block; width: 12px; height: 12px; border-radius: 2px; }
.range { width: 140px; height: 18px; } .range .zero { stroke: var(--soft); }
.range .span { stroke: var(--c1); stroke-width: 2.5; fill: none; }
@media (max-width: 600px) { body { padding: 14px 14px 40px; } .headline { font-size: 18px; }
  .banner { padding: 12px; gap: 12px; } .bigsign { width: 40px; height: 40px; line-height: 40px;
  font-size: 22px; } .card { padding: 10px 12px; } dl { grid-template-columns: 1fr; } }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } nav, .skip { display: none; }
  .card, figure, tr, .banner { break-inside: avoid; } h2, h3, h4 { break-after: avoid; }
  .scroll { overflow: visible; background: none; } th { white-space: normal; }
  .cards { grid-template-columns: 1fr 1fr; }
  .card details:not([open]) { display: none; } .card .diagram { max-width: 100%; height: auto; }
  .banner, .bigsign, .bar span, .key, .proportions span { print-color-adjust: exact;
  -webkit-print-color-adjust: exact; } a { color: inherit; text-decoration: none; } }
"""
