// The page of `report`: figures, kernels, calls, and the graph.
const KINDS = {
  kernel: "#f6d860", pointwise: "#b5d99c", reduce: "#8fd3c8", view: "#cfe8cf", param: "#efe3a4",
  literal: "#b9d7ea", host: "#f4b183", return: "#ffffff", other: "#d5d9df", group: "#dcd6f7",
};

table("memory", data.memory.map(([name, n]) => [name, bytes(n)]));
table("compilation", data.compilation);
table("versions", data.versions);
$("verify-note").textContent = data.verify.note;
if (data.verify.outputs.length) {
  table("verify", [], ["output", "", "max abs diff", "max rel diff", "rms", "remarks"]);
  for (const o of data.verify.outputs) {
    const verdict = element("td", { class: o.passed ? "good" : "bad" }, o.passed ? "pass" : "FAIL");
    const numbers = [o.max_abs, o.max_rel, o.rms].map((x) => element("td", { class: "n" }, x));
    $("verify").append(element("tr", {}, element("td", { class: "code" }, o.name), verdict, ...numbers,
      element("td", {}, o.remarks.join("; "))));
  }
}
$("text").textContent = data.text;

// ---- kernels
const COLUMNS = [
  ["instruction", "text", "code"], ["nodes of the model", "nodes", "code"], ["rule", "rule", "rule"],
  ["time", "ms", "n", ms], ["share", "share", "share"],
  ["bytes", "bytes", "n", bytes], ["operations", "operations", "n", operations],
  ["GB/s", "gb_s", "n", (v) => (v === null ? "" : v.toPrecision(3))],
  ["GFLOP/s", "gflop_s", "n", (v) => (v === null ? "" : v.toPrecision(3))],
  // of the memory's or the arithmetic's, whichever is nearer; above the memory's it is in caches
  ["of peak", "peak", "n", (v) => (v === null ? "" : v > 1 ? "cache" : `${(100 * v).toFixed(0)} %`)],
];
let sorted = { key: "share", up: false };
const rows = data.kernels;
const kernelOf = new Map(rows.map((r) => [r.id, r]));
function kernels() {
  const t = $("kernels");
  t.replaceChildren();
  const heads = COLUMNS.map(([label, key, kind]) => {
    const mark = sorted.key === key ? (sorted.up ? " ↑" : " ↓") : "";
    const h = element("th", { class: `sorts ${kind === "n" ? "n" : ""}` }, label + mark);
    h.onclick = () => { sorted = { key, up: sorted.key === key ? !sorted.up : false }; kernels(); };
    return h;
  });
  t.append(element("tr", {}, ...heads));
  const order = [...rows];
  if (sorted.key) {
    const v = (r) => (r[sorted.key] === null || r[sorted.key] === undefined ? -Infinity : r[sorted.key]);
    order.sort((a, b) => (v(a) < v(b) ? -1 : v(a) > v(b) ? 1 : 0) * (sorted.up ? 1 : -1));
  }
  const most = Math.max(...rows.map((r) => r.share || 0), 1e-9);
  for (const r of order) {
    const cells = COLUMNS.map(([label, key, kind, shown]) => {
      if (kind === "share") {
        const fill = element("div", { style: `width:${(100 * (r.share || 0)) / most}%` });
        const number = element("span", {}, `${((r.share || 0) * 100).toFixed(1)} %`);
        return element("td", { class: "share", "data-label": label }, number, fill);
      }
      return element("td", { class: kind, "data-label": label }, ...(shown ? [shown(r[key])] : breakable(r[key])));
    });
    const tr = element("tr", { "data-id": r.id ?? "", tabindex: r.id === null ? -1 : 0 }, ...cells);
    if (r.id !== null) {
      tr.onclick = () => choose(r.id);
      tr.onkeydown = (e) => { if (e.key === "Enter") choose(r.id); };
    }
    t.append(tr);
  }
}
$("kernels-note").textContent = data.kernels_note;
kernels();

// ---- calls
function histogram() {
  const times = data.calls;
  if (!times.length) return;
  const low = times[0], high = times[times.length - 1], n = Math.min(40, Math.max(5, times.length));
  const counts = Array(n).fill(0);
  for (const t of times) counts[high > low ? Math.min(n - 1, Math.floor(((t - low) / (high - low)) * n)) : 0]++;
  const s = drawn("svg", { viewBox: "0 0 400 150", preserveAspectRatio: "none", role: "img", "aria-label": "times of calls" });
  const most = Math.max(...counts);
  counts.forEach((c, i) => {
    const h = (c / most) * 120;
    s.append(drawn("rect", { x: (i * 400) / n + 1, y: 125 - h, width: 400 / n - 2, height: h }));
  });
  $("calls").append(s);
  const p = element("p", { class: "note" }, `${times.length} calls from ${ms(low)} to ${ms(high)}`);
  $("calls").append(p);
  const list = element("table", {});
  for (const [k, v] of data.times) list.append(element("tr", {}, element("td", {}, k), element("td", { class: "n" }, v)));
  $("calls").append(list);
}
histogram();

// ---- the graph
const byId = new Map(data.nodes.map((n) => [n.id, n]));
const open = new Set();
let chosen = null, byTime = data.nodes.some((n) => n.ms), view = { x: 0, y: 0, scale: 1 }, box = null;
const groups = data.groups; // [first id, ... last id] by name

function visible() {
  const of = new Map();
  const nodes = [];
  const inside = new Map();
  groups.forEach((g, i) => g.forEach((id) => inside.set(id, i)));
  const made = new Map();
  for (const n of data.nodes) {
    const g = inside.get(n.id);
    if (g === undefined || open.has(g)) { of.set(n.id, n.id); nodes.push(n); continue; }
    const id = `g${g}`;
    of.set(n.id, id);
    if (!made.has(id)) {
      const members = groups[g].map((m) => byId.get(m));
      const time = members.some((m) => m.ms) ? members.reduce((s, m) => s + (m.ms || 0), 0) : null;
      const share = members.reduce((s, m) => s + (m.share || 0), 0);
      const node = { id, kind: "group", title: `${members.length} instructions`, second: time === null ? "open" : ms(time),
        ms: time, share, group: g, text: members.map((m) => m.text).join("\n") };
      made.set(id, node);
      nodes.push(node);
    }
  }
  const seen = new Set();
  const edges = [];
  for (const [a, b] of data.edges) {
    const p = of.get(a), q = of.get(b), key = `${p}>${q}`;
    if (p !== q && !seen.has(key)) { seen.add(key); edges.push([p, q]); }
  }
  return { nodes, edges };
}
const largestShare = Math.max(...data.nodes.map((n) => n.share || 0), 1e-9);
function heat(share) {
  const t = Math.min(1, (share || 0) / largestShare);
  const mix = (a, b) => Math.round(a + (b - a) * t);
  return `rgb(${mix(236, 239)},${mix(239, 96)},${mix(243, 72)})`;
}
function short(text, n) { return text.length > n ? `${text.slice(0, n - 1)}…` : text; }

function draw(fitted) {
  const { nodes, edges } = visible();
  const { at, paths } = place(nodes, edges);
  const svg = drawn("svg");
  const marker = drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    drawn("path", { d: "M0,0 L8,4 L0,8 z", fill: "var(--edge)" }));
  svg.append(drawn("defs", {}, marker));
  const world = drawn("g");
  for (const { path } of paths) {
    let d = "";
    path.forEach((n, i) => {
      const y = n.id !== null && i === 0 ? n.y + NODE.height : n.id === null ? n.y + NODE.height / 2 : n.y;
      if (i === 0) { d = `M${n.x},${y}`; n.end = y; } else {
        const before = path[i - 1], y0 = before.end, half = (y0 + y) / 2;
        d += ` C${before.x},${half} ${n.x},${half} ${n.x},${y}`;
        n.end = y;
      }
    });
    world.append(drawn("path", { class: "edge", d, "marker-end": "url(#arrow)" }));
  }
  for (const n of nodes) {
    const p = at.get(n.id);
    const colour = byTime && n.kind !== "param" && n.kind !== "return" ? heat(n.share) : KINDS[n.kind] || KINDS.other;
    const g = drawn("g", { class: `node ${n.kind === "group" ? "group" : ""} ${n.id === chosen ? "chosen" : ""}`,
      transform: `translate(${p.x - NODE.width / 2},${p.y})` });
    g.append(drawn("rect", { width: NODE.width, height: NODE.height, rx: 6, fill: colour }));
    const title = drawn("text", { x: 10, y: 19 }); title.textContent = short(n.title, 40);
    const second = drawn("text", { x: 10, y: 36, class: "second" });
    second.textContent = short(n.ms && n.kind !== "group" ? `${ms(n.ms)}  ${n.second}` : n.second, 44);
    const full = drawn("title"); full.textContent = n.text;
    g.append(title, second, full);
    g.addEventListener("click", () => {
      if (moved) return;
      if (n.kind === "group") { open.add(n.group); draw(false); } else choose(n.id, n);
    });
    world.append(g);
  }
  svg.append(world);
  $("graph").replaceChildren(svg);
  const all = [...at.values()];
  const xs = all.map((n) => n.x), ys = all.map((n) => n.y);
  box = { x0: Math.min(...xs) - NODE.width / 2, x1: Math.max(...xs) + NODE.width / 2, y0: Math.min(...ys), y1: Math.max(...ys) + NODE.height };
  const first = all.filter((n) => n.layer < 6);
  box.top = first.reduce((s, n) => s + n.x, 0) / first.length;
  world.id = "world";
  if (fitted) fit(); else move();
  $("all").textContent = groups.length ? (open.size === groups.length ? "Collapse" : "Expand all") : "";
  $("all").style.display = groups.length && data.nodes.length <= 3000 ? "" : "none";
  legend(nodes);
}
function legend(nodes) {
  const kinds = [...new Set(nodes.map((n) => n.kind))].filter((k) => KINDS[k]);
  const box = $("legend");
  box.replaceChildren();
  const timed = data.nodes.some((n) => n.ms);
  $("colour").textContent = byTime ? "Colour: time" : "Colour: class";
  $("colour").style.display = timed ? "" : "none";
  if (byTime) {
    const percent = (s) => `${Number((100 * s).toPrecision(2))} % of the time`;
    for (const s of [0, largestShare / 2, largestShare]) {
      box.append(element("span", {}, element("i", { style: `background:${heat(s)}` }), percent(s)));
    }
    return;
  }
  for (const k of kinds) box.append(element("span", {}, element("i", { style: `background:${KINDS[k]}` }), k));
}
function move() {
  const w = document.getElementById("world");
  w.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`);
}
function fit() {
  const r = $("graph").getBoundingClientRect(), pad = 16;
  const whole = Math.min((r.width - 2 * pad) / (box.x1 - box.x0), (r.height - 2 * pad) / (box.y1 - box.y0));
  // a long program starts at its top, large enough to be read
  const wide = Math.min(1, (r.width - 2 * pad) / (box.x1 - box.x0));
  view.scale = Math.max(Math.min(whole, 1.2), Math.min(wide, 0.62));
  const tall = (box.y1 - box.y0) * view.scale > r.height - 2 * pad;
  view.x = r.width / 2 - (tall ? box.top : (box.x0 + box.x1) / 2) * view.scale;
  view.y = tall ? pad - box.y0 * view.scale : r.height / 2 - ((box.y0 + box.y1) / 2) * view.scale;
  move();
}
function zoom(factor, x, y) {
  const s = Math.min(4, Math.max(0.03, view.scale * factor));
  view.x = x - ((x - view.x) * s) / view.scale;
  view.y = y - ((y - view.y) * s) / view.scale;
  view.scale = s;
  move();
}
// What is known of the chosen instruction: its text, and of a kernel why it is what it is.
function detail(n) {
  const box = $("detail");
  box.replaceChildren();
  if (!n) return;
  box.append(element("p", { class: "text" }, n.text));
  const k = kernelOf.get(n.id);
  if (!k) return;
  const line = (name, value) => { if (value) box.append(element("p", {}, element("b", {}, `${name} `), value)); };
  line("nodes of the model", k.nodes);
  line("rule", k.rule);
  const peak = k.peak === null ? "" : k.peak > 1 ? ", from caches" : `, ${(100 * k.peak).toFixed(0)} % of the machine's peak`;
  line("time", `${ms(k.ms)}, ${(100 * (k.share || 0)).toFixed(1)} % of all kernels${peak}`);
  line("work", [bytes(k.bytes), k.operations === null ? "" : `${operations(k.operations)} operations`].filter(Boolean).join(", "));
  if (!k.why.length) return;
  box.append(element("p", {}, element("b", {}, "rules that refused, in order")));
  box.append(element("ul", {}, ...k.why.map(([part, rule, reason]) =>
    element("li", {}, element("b", {}, part ? `${rule} (${part})` : rule), `: ${reason}`))));
}
function choose(id, node) {
  chosen = id;
  detail(node || byId.get(id));
  for (const tr of document.querySelectorAll("#kernels tr")) tr.classList.toggle("chosen", tr.dataset.id === String(id));
  groups.forEach((g, i) => { if (g.includes(id)) open.add(i); });
  draw(false);
}
let moved = false;
const pointers = new Map();
const area = $("graph");
area.addEventListener("pointerdown", (e) => { pointers.set(e.pointerId, [e.clientX, e.clientY]); moved = false; });
window.addEventListener("pointermove", (e) => {
  const last = pointers.get(e.pointerId);
  if (!last) return;
  const others = [...pointers].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
  if (others.length) {
    const r = area.getBoundingClientRect(), o = others[0];
    const before = Math.hypot(last[0] - o[0], last[1] - o[1]), now = Math.hypot(e.clientX - o[0], e.clientY - o[1]);
    if (before > 0) zoom(now / before, (e.clientX + o[0]) / 2 - r.left, (e.clientY + o[1]) / 2 - r.top);
  } else {
    view.x += e.clientX - last[0];
    view.y += e.clientY - last[1];
  }
  if (Math.hypot(e.clientX - last[0], e.clientY - last[1]) > 2) moved = true;
  pointers.set(e.pointerId, [e.clientX, e.clientY]);
  move();
});
for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, (e) => pointers.delete(e.pointerId));
area.addEventListener("wheel", (e) => {
  e.preventDefault();
  const r = area.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - r.left, e.clientY - r.top);
}, { passive: false });
area.addEventListener("keydown", (e) => {
  const r = area.getBoundingClientRect();
  const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  if (steps[e.key]) { view.x += steps[e.key][0]; view.y += steps[e.key][1]; move(); e.preventDefault(); }
  if (e.key === "+" || e.key === "-") zoom(e.key === "+" ? 1.25 : 0.8, r.width / 2, r.height / 2);
});
const middle = (f) => () => { const r = area.getBoundingClientRect(); zoom(f, r.width / 2, r.height / 2); };
$("in").onclick = middle(1.25);
$("out").onclick = middle(0.8);
$("fit").onclick = fit;
$("colour").onclick = () => { byTime = !byTime; draw(false); };
$("all").onclick = () => {
  if (open.size === groups.length) open.clear(); else groups.forEach((_, i) => open.add(i));
  draw(true);
};
window.addEventListener("resize", fit);
const slowest = rows.reduce((a, b) => (b.id !== null && (!a || (b.ms || 0) > (a.ms || 0)) ? b : a), null);
if (slowest && byId.has(slowest.id)) { chosen = slowest.id; detail(byId.get(chosen)); }
draw(true);

// ---- compared with another page
if (data.against) {
  const a = data.against;
  $("against-section").hidden = false;
  $("against-note").textContent = `${a.with} (${a.title}): median call ${ms(a.before_ms)} there, ${ms(a.ms)} here`
    + (a.ratio === null ? "" : `, ${a.ratio.toFixed(2)} of it`);
  const head = ["nodes of the model", "there", "here", "ratio", "rule"];
  $("against").append(element("tr", {}, ...head.map((h) => element("th", {}, h))));
  const moved = (k) => Math.abs((k.ms || 0) - (k.before_ms || 0));
  for (const k of [...a.kernels].sort((p, q) => moved(q) - moved(p))) {
    const ratio = k.ms === null || !k.before_ms ? "" : (k.ms / k.before_ms).toFixed(2);
    const rule = k.rule === k.before_rule || !k.rule || !k.before_rule ? k.rule || k.before_rule : `${k.before_rule} → ${k.rule}`;
    const cells = [["code", k.nodes || k.text], ["n", ms(k.before_ms)], ["n", ms(k.ms)], ["n", ratio], ["rule", rule]];
    $("against").append(element("tr", {}, ...cells.map(([c, v], i) => element("td", { class: c, "data-label": head[i] }, ...breakable(v)))));
  }
  table("against-changed", a.changed, ["", "there", "here"]);
}
