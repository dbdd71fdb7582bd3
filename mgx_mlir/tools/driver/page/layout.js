// Places a graph in layers: longest path, order by barycentres, positions by their neighbours.
const NODE = { width: 300, height: 46, gapX: 26, gapY: 40, thin: 14 };

function place(nodes, edges) {
  const at = new Map(nodes.map((n) => [n.id, { id: n.id, width: NODE.width, ins: [], outs: [], layer: 0 }]));
  const links = [];
  const reads = new Map(nodes.map((n) => [n.id, []])), readers = new Map(nodes.map((n) => [n.id, []]));
  for (const [a, b] of edges) {
    links.push([at.get(a), at.get(b)]);
    reads.get(b).push(at.get(a));
    readers.get(a).push(at.get(b));
  }
  // nodes come in an order in which edges go forward
  for (const n of nodes) {
    const me = at.get(n.id);
    for (const b of readers.get(n.id)) b.layer = Math.max(b.layer, me.layer + 1);
  }
  // what has no input stands just ahead of what reads it
  for (const n of nodes) {
    const next = readers.get(n.id);
    if (reads.get(n.id).length || !next.length) continue;
    at.get(n.id).layer = Math.max(0, next.reduce((m, b) => Math.min(m, b.layer), Infinity) - 1);
  }
  const layers = [];
  const put = (n) => { (layers[n.layer] ||= []).push(n); };
  for (const n of nodes) put(at.get(n.id));
  const paths = [];
  for (const [a, b] of links) {
    let last = a;
    const path = [a];
    for (let l = a.layer + 1; l < b.layer; l++) {
      const bend = { id: null, width: NODE.thin, ins: [last], outs: [], layer: l };
      last.outs.push(bend);
      put(bend);
      path.push(bend);
      last = bend;
    }
    last.outs.push(b);
    b.ins.push(last);
    path.push(b);
    paths.push({ from: a.id, to: b.id, path });
  }
  for (let l = 0; l < layers.length; l++) (layers[l] ||= []).forEach((n, i) => { n.order = i; });
  const mean = (list) => list.reduce((s, n) => s + n.order, 0) / list.length;
  for (let sweep = 0; sweep < 8; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      for (const n of layer) {
        const near = down ? n.ins : n.outs;
        n.key = near.length ? mean(near) : n.order;
      }
      layer.sort((p, q) => p.key - q.key);
      layer.forEach((n, i) => { n.order = i; });
    }
  }
  for (const layer of layers) {
    let x = 0;
    for (const n of layer) { n.x = x + n.width / 2; x += n.width + NODE.gapX; }
    for (const n of layer) n.x -= x / 2;
  }
  for (let sweep = 0; sweep < 12; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wanted = layer.map((n) => {
        const near = down ? n.ins : n.outs;
        return near.length ? near.reduce((s, m) => s + m.x, 0) / near.length : n.x;
      });
      spread(layer, wanted);
    }
  }
  layers.forEach((layer, l) => { for (const n of layer) n.y = l * (NODE.height + NODE.gapY); });
  return { at, paths };
}

// The positions nearest to the wanted ones that keep the order and the gaps.
function spread(layer, wanted) {
  const blocks = [];
  layer.forEach((n, i) => {
    const room = i ? (layer[i - 1].width + n.width) / 2 + NODE.gapX : 0;
    blocks.push({ from: i, shift: [0], sum: wanted[i], count: 1, room });
    while (blocks.length > 1) {
      const b = blocks[blocks.length - 1], a = blocks[blocks.length - 2];
      const end = a.sum / a.count + a.shift[a.shift.length - 1];
      if (b.sum / b.count >= end + b.room) break;
      const base = a.shift[a.shift.length - 1] + b.room;
      blocks.pop();
      for (const s of b.shift) a.shift.push(base + s);
      a.sum += b.sum - base * b.count;
      a.count += b.count;
    }
  });
  for (const b of blocks) b.shift.forEach((s, i) => { layer[b.from + i].x = b.sum / b.count + s; });
}
