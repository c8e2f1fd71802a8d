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
/** A copy whose labels and titles are no wider than its place: labels end in …, titles have several lines. */
function narrowed(given, wide) {
  const lines = new RegExp(`.{1,${Math.floor(wide / 8.4)}}(\\s|$)`, "g");
  return JSON.parse(JSON.stringify(given), (key, value) =>
    key === "labelLimit" ? Math.min(value, 0.4 * wide) : key === "title" && value?.length * 8.4 > wide ? value.match(lines) : value);
}
async function drawChart(place, specification) {
  const wide = wideNow(place), spec = narrowed(specification, wide);
  const columns = spec.facet || spec.concat ? Math.max(1, Math.min(spec.columns ?? 1, Math.floor(wide / 230))) : 1;
  if (spec.facet || spec.concat) spec.columns = columns;
  let compiled, view;
  const excess = () => Number(place.querySelector("svg").getAttribute("width")) - wide;
  for (let entries = Math.max(1, Math.floor(wide / 170)); entries; entries--) { // of a legend, beside one another
    const theme = { ...config, axis: narrowed(config.axis, wide), legend: { ...config.legend, columns: entries } };
    compiled = vegaLite.compile(spec, { config: theme, logger: { warn() {}, info() {}, debug() {}, error: console.error, level() {} } }).spec;
    view?.finalize();
    view = new vega.View(vega.parse(compiled, null, { ast: true }), { expr: interpreter.expression, renderer: "svg", container: place, hover: true });
    await view.runAsync();
    if (excess() <= 0) break;
  }
  view.tooltip((_, event, item, text) => (text ? showTip(event.clientX, event.clientY, text) : hideTip()));
  const widths = (compiled.signals ?? []).filter((each) => /(^|_)(child)?width$/i.test(each.name) && typeof each.value === "number");
  let change = Math.floor(wide / columns) - 260; // of 200 at first: wider than a legend, and then by what is too much
  for (let turn = 0; turn < 3 && Math.abs(change) > 1; turn++) {
    for (const each of widths) view.signal(each.name, Math.max(60, view.signal(each.name) + change));
    if (!widths.some((each) => each.name === "width") && typeof compiled.width === "number") view.width(Math.max(60, view.width() + change));
    await view.resize().runAsync();
    change = Math.floor(-excess() / columns);
  }
  place.querySelector("svg").setAttribute("aria-hidden", "true"); // its place has a name, and the keys read its marks
  place.view?.finalize();
  place.view = view;
  return view;
}

const marksOf = (place) => [...place.querySelectorAll("svg path, svg text, svg line")].filter((each) => each.__data__?.tooltip);
async function stepTo(place, step) {
  const marks = marksOf(place), last = marks.findIndex((each) => each.classList.contains("at"));
  marks[last]?.classList.remove("at");
  const next = marks[(last + step + marks.length + (last < 0 && step < 0)) % marks.length];
  if (!next) return;
  next.classList.add("at");
  await zoom(place, "");
  const box = next.getBoundingClientRect();
  showTip(box.left + box.width / 2, box.bottom, next.__data__.tooltip);
}
// What the wheel zooms (the parameter `seen`) is zoomed about the mark that is read by + and -; 0 shows all, and no key
// what is needed to see that mark.
async function zoom(place, key) {
  const name = Object.keys(place.view.getState().signals).find((each) => each.startsWith("seen_"));
  if (!name) return;
  const [left, right] = place.view.scale("x").domain().map(Number), at = place.querySelector(".at")?.__data__.datum[name.slice(5)];
  if (!key && at >= left && at <= right) return;
  const middle = at ?? (left + right) / 2, half = (right - left) * ({ "+": 0.25, "-": 1 }[key] ?? 0.5);
  await place.view.signal(name, key === "0" ? null : [middle - half, middle + half]).runAsync();
}
for (const place of document.querySelectorAll(".chart")) {
  place.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hideTip();
    if (step) stepTo(place, step);
    else if ("+-0".includes(event.key)) zoom(place, event.key).then(() => place.querySelector(".at") && stepTo(place, 0));
    else return;
    event.preventDefault();
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
