// The page of `quantize --report`: what each layer loses, what is kept, size, time and accuracy.
const number = (n, digits) => (n === null || n === undefined ? "" : n.toFixed(digits));

table("figures", data.figures, ["", "before", "after", "change"]);
table("versions", data.versions);
$("layers-note").textContent = data.layers_note;
$("outputs-note").textContent = data.outputs_note;
table("outputs", [], ["output", "SQNR dB", "cosine", "max abs diff"]);
for (const o of data.outputs) {
  const cells = [o.db, number(o.cosine, 6), o.max_abs === null ? "inf" : o.max_abs.toPrecision(3)];
  $("outputs").append(element("tr", {}, element("td", { class: "code" }, o.name),
    ...cells.map((c) => element("td", { class: "n" }, c))));
}

// ---- layers: a bar and a row each
const COLUMNS = [["layer", "name"], ["op", "kind"], ["type", "type"], ["SQNR dB", "sqnr"], ["cosine", "cosine"], ["remarks", "why"]];
const bars = new Map(), lines = new Map();
let sorted = { key: null, up: true };

function choose(r) {
  for (const [other, b] of bars) b.classList.toggle("chosen", other === r);
  for (const [other, tr] of lines) tr.classList.toggle("chosen", other === r);
  const loss = r.db ? `, SQNR ${r.db}${r.sqnr === null ? "" : " dB"}, cosine ${number(r.cosine, 6)}` : "";
  $("detail").textContent = `${r.name}: ${r.kind} in ${r.type}${loss}${r.why ? `; ${r.why}` : ""}`;
}

function plot() {
  const rows = data.layers.filter((r) => r.db);
  if (!rows.length) return;
  const finite = rows.filter((r) => r.sqnr !== null).map((r) => r.sqnr);
  const top = Math.max(10, Math.ceil(Math.max(0, ...finite) / 10) * 10), low = Math.min(0, Math.floor(Math.min(0, ...finite) / 10) * 10);
  const left = 44, height = 220, step = Math.max(8, Math.min(48, 1160 / rows.length)), width = left + rows.length * step + 8;
  const y = (v) => 8 + ((top - v) / (top - low)) * (height - 16);
  const s = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  for (let v = low; v <= top; v += top - low > 80 ? 20 : 10) {
    s.append(drawn("line", { x1: left, x2: width, y1: y(v), y2: y(v) }));
    const t = drawn("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" });
    t.textContent = `${v} dB`;
    s.append(t);
  }
  rows.forEach((r, i) => {
    const v = r.sqnr !== null ? r.sqnr : r.db === "exact" ? top : low;
    const b = drawn("rect", { x: left + i * step + 1, y: Math.min(y(v), y(0)), width: step - 2,
      height: Math.max(2, Math.abs(y(0) - y(v))), class: r.why ? "kept" : "" });
    const hint = drawn("title");
    hint.textContent = `${r.name}: ${r.db}`;
    b.append(hint);
    b.onclick = () => choose(r);
    bars.set(r, b);
    s.append(b);
  });
  $("plot").append(s);
}

function rows() {
  const t = $("layers");
  t.replaceChildren();
  lines.clear();
  t.append(element("tr", {}, ...COLUMNS.map(([label, key]) => {
    const mark = sorted.key === key ? (sorted.up ? " ↑" : " ↓") : "";
    const n = key === "sqnr" || key === "cosine" ? "n" : "";
    const h = element("th", { class: `sorts ${n}` }, label + mark);
    h.onclick = () => { sorted = { key, up: sorted.key === key ? !sorted.up : true }; rows(); };
    return h;
  })));
  const order = [...data.layers];
  const value = (r) => (r[sorted.key] === null || r[sorted.key] === undefined ? Infinity : r[sorted.key]);
  if (sorted.key) order.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (sorted.up ? 1 : -1));
  for (const r of order) {
    const tr = element("tr", {}, element("td", { class: "code" }, r.name), element("td", {}, r.kind), element("td", {}, r.type),
      element("td", { class: "n" }, r.db), element("td", { class: "n" }, number(r.cosine, 6)), element("td", {}, r.why));
    tr.onclick = () => choose(r);
    lines.set(r, tr);
    t.append(tr);
  }
}
plot();
rows();
