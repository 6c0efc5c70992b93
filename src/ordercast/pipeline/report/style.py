"""The look of the report: one style sheet, light and dark, nothing loaded from anywhere."""

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --soft: #5c6776; --line: #d9dee5;
  --tint: #f4f6f9; --ok: #1a7f4b; --bad: #c0262d; --open: #9a6700; --blue: #2563b8;
  --c0: #2563b8; --c1: #c2570c; --c2: #1a7f4b; --c3: #8b3fb5; --c4: #b3246b; --c5: #5c6776; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e4e8ee; --soft: #9aa5b4;
  --line: #333c49; --tint: #1c222c; --ok: #4cc38a; --bad: #ff7b72; --open: #e3b341; --blue: #6ea8ff;
  --c0: #6ea8ff; --c1: #ffa657; --c2: #4cc38a; --c3: #d2a8ff; --c4: #ff9bce; --c5: #9aa5b4; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 20px; margin: 40px 0 10px; }
h3 { font-size: 16px; margin: 28px 0 8px; } p { margin: 6px 0; }
.soft { color: var(--soft); } code { font: 13px ui-monospace, "Liberation Mono", monospace; }
.banner { border: 1px solid var(--line); border-left: 6px solid var(--soft); border-radius: 6px;
  background: var(--tint); padding: 12px 16px; margin: 16px 0; font-size: 17px; }
.banner.ok { border-left-color: var(--ok); } .banner.violated { border-left-color: var(--bad); }
.banner.inconclusive { border-left-color: var(--open); }
.facts { display: flex; flex-wrap: wrap; gap: 10px; padding: 0; list-style: none; margin: 12px 0; }
.facts li { border: 1px solid var(--line); border-radius: 6px; padding: 6px 14px; min-width: 96px; }
.facts b { display: block; font-size: 19px; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 13px; }
th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.counted { white-space: nowrap; } .verdict { white-space: nowrap; font-weight: 600; }
.verdict.ok { color: var(--ok); } .verdict.violated { color: var(--bad); }
.verdict.inconclusive { color: var(--open); } .verdict.na { color: var(--soft); font-weight: 400; }
.unpromised .verdict { color: var(--soft); font-weight: 400; }
.others > summary { font-size: 16px; }
.card { border: 1px solid var(--line); border-radius: 6px; padding: 12px 16px; margin: 12px 0; }
.card p { font-size: 16px; } .card .scroll { margin-top: 8px; }
details { margin: 10px 0; } summary { cursor: pointer; color: var(--blue); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--tint); padding: 10px;
  border-radius: 6px; font: 12px ui-monospace, "Liberation Mono", monospace; }
svg text { fill: var(--ink); font: 12px system-ui, "Liberation Sans", sans-serif; }
.diagram .process { stroke: var(--soft); stroke-width: 1.5; } .diagram .name { font-weight: 600; }
.diagram .label { text-anchor: middle; paint-order: stroke; stroke: var(--paper);
  stroke-width: 4px; } .diagram .never { fill: var(--bad); }
.diagram .send { fill: var(--paper); stroke: var(--blue); stroke-width: 2.5; }
.diagram .deliver { fill: var(--ink); }
.diagram .ring { fill: none; stroke: var(--bad); stroke-width: 2.5; }
.diagram .message { fill: none; stroke: var(--blue); stroke-width: 1.5; }
.diagram .absent { fill: none; stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 4; }
.diagram .cross { fill: none; stroke: var(--bad); stroke-width: 3; } .tip { fill: var(--soft); }
.plot { width: 100%; max-width: 720px; height: auto; } .plot .grid { stroke: var(--line); }
.plot .right { text-anchor: end; } .plot .middle { text-anchor: middle; }
.curve { fill: none; stroke-width: 2.5; } .swatch { width: 34px; height: 10px; }
.curve0 { stroke: var(--c0); } .curve1 { stroke: var(--c1); stroke-dasharray: 9 4; }
.curve2 { stroke: var(--c2); stroke-dasharray: 3 3; }
.curve3 { stroke: var(--c3); stroke-dasharray: 12 4 3 4; }
.curve4 { stroke: var(--c4); stroke-dasharray: 6 6; } .curve5 { stroke: var(--c5); }
"""
