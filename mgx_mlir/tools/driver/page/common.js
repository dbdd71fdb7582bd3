"use strict";
// What all pages share: elements, numbers in units, cards, tables, light and dark.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}
function drawn(name, attributes = {}, ...children) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}
function scaled(n, units, step = 1000) {
  if (n === null || n === undefined) return "";
  let i = 0;
  while (Math.abs(n) >= step && i < units.length - 1) { n /= step; i++; }
  return `${Number(n.toPrecision(3))} ${units[i]}`;
}
const bytes = (n) => scaled(n, ["B", "kB", "MB", "GB", "TB"]);
const operations = (n) => scaled(n, ["", "k", "M", "G", "T"]);
function ms(n) {
  if (n === null || n === undefined) return "";
  return n > 0 && n < 0.1 ? `${Number((n * 1000).toPrecision(4))} µs` : `${Number(n.toPrecision(4))} ms`;
}
// A long name may be broken behind its underscores.
const breakable = (text) => String(text).split(/(?<=_)/).flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));

// ---- figures
$("title").textContent = data.title;
$("subtitle").textContent = data.subtitle;
for (const [label, value, tone] of data.cards) {
  const b = element("b", tone ? { class: tone } : {}, value);
  $("cards").append(element("div", { class: "card" }, b, element("span", {}, label)));
}
function table(id, rows, head) {
  const t = $(id);
  if (head) t.append(element("tr", {}, ...head.map((h) => element("th", {}, h))));
  for (const row of rows) {
    t.append(element("tr", {}, ...row.map((v, i) => element("td", i ? {} : { class: "" }, String(v)))));
  }
}
$("theme").onclick = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
};
