"use strict";
// Charts: beside each place (.chart) stands its specification. It is drawn as wide as its place; what its marks say is
// shown at the pointer and, by the arrow keys, at the mark that is next. Elsewhere: drawChart(place, specification).
document.documentElement.classList.add("script");

const tip = document.createElement("div"); // its text is set as text, never as markup
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("role", "status");
document.body.append(tip);
function showTip(left, top, text) {
  tip.textContent = text;
  tip.hidden = false;
  const most = scrollX + document.documentElement.clientWidth - tip.offsetWidth - 6;
  tip.style.left = Math.max(Math.min(left + scrollX + 14, most), scrollX) + "px";
  tip.style.top = top + scrollY + 16 + "px";
}
const hideTip = () => { tip.hidden = true; };

const wideNow = (place) => place.clientWidth || document.querySelector("main").clientWidth;
async function drawChart(place, specification) {
  const wide = wideNow(place), spec = structuredClone(specification);
  const columns = spec.facet || spec.concat ? Math.max(1, Math.min(spec.columns ?? 1, Math.floor(wide / 230))) : 1;
  if (spec.facet || spec.concat) spec.columns = columns;
  const theme = { ...config, legend: { ...config.legend, columns: Math.max(1, Math.floor(wide / 170)) } };
  const compiled = vegaLite.compile(spec, { config: theme, logger: { warn() {}, info() {}, debug() {}, error: console.error, level() {} } }).spec;
  const view = new vega.View(vega.parse(compiled, null, { ast: true }), { expr: interpreter.expression, renderer: "svg", container: place, hover: true });
  view.tooltip((_, event, item, text) => (text ? showTip(event.clientX, event.clientY, text) : hideTip()));
  await view.runAsync();
  const excess = () => Number(place.querySelector("svg").getAttribute("width")) - wide;
  const widths = (compiled.signals ?? []).filter((each) => /(^|_)(child)?width$/i.test(each.name) && typeof each.value === "number");
  for (let turn = 0; turn < 2 && Math.abs(excess()) > 1; turn++) {
    const change = Math.floor(-excess() / columns);
    for (const each of widths) view.signal(each.name, Math.max(60, view.signal(each.name) + change));
    if (!widths.some((each) => each.name === "width") && typeof compiled.width === "number") view.width(Math.max(60, view.width() + change));
    await view.resize().runAsync();
  }
  place.view?.finalize();
  place.view = view;
  return view;
}

const marksOf = (place) => [...place.querySelectorAll("svg path, svg text, svg line")].filter((each) => each.__data__?.tooltip);
function stepTo(place, step) {
  const marks = marksOf(place), last = marks.findIndex((each) => each.classList.contains("at"));
  marks[last]?.classList.remove("at");
  const next = marks[(last + step + marks.length + (last < 0 && step < 0)) % marks.length];
  if (!next) return;
  next.classList.add("at");
  const box = next.getBoundingClientRect();
  showTip(box.left + box.width / 2, box.bottom, next.__data__.tooltip);
}
for (const place of document.querySelectorAll(".chart")) {
  place.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hideTip();
    if (!step) return;
    event.preventDefault();
    stepTo(place, step);
  });
  place.addEventListener("blur", () => { hideTip(); marksOf(place).forEach((each) => each.classList.remove("at")); });
}

// All are drawn once, those that are hidden as wide as the page; again when their width changes.
const watch = new ResizeObserver((changes) => {
  for (const { target } of changes)
    if (target.clientWidth && target.drawnAt !== target.clientWidth) target.drawing = drawAgain(target);
});
async function drawAgain(place) {
  place.drawnAt = wideNow(place);
  await drawChart(place, JSON.parse(place.parentElement.querySelector(".spec").textContent));
}
const ready = (async () => {
  for (const place of document.querySelectorAll(".chart")) {
    if (place.parentElement.querySelector(".spec")) {
      await drawAgain(place);
      watch.observe(place);
    }
  }
})();
