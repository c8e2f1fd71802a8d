"use strict";
// Tables sort, lines and jobs say their numbers, the Gantt chart zooms. Without it the page shows the same.
document.documentElement.classList.add("script");

const hours = (seconds) => (seconds / 3600).toFixed(2) + " h";
const make = (name, attributes) => {
  const found = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  return found;
};

// A box beside the pointer; its text is set as text, never as markup.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("role", "status");
document.body.append(tip);
function show(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(event.pageX + 14, scrollX + document.documentElement.clientWidth - tip.offsetWidth - 6);
  tip.style.left = Math.max(left, scrollX) + "px";
  tip.style.top = event.pageY + 16 + "px";
}
const hide = () => { tip.hidden = true; };

// Sorting: by what a cell counts as (data-v), by its number, by the duration that it begins with, else by its text; of
// what changes by what it becomes. Rows that belong together stay so.
const value = (row, column) => {
  const cell = [...row.querySelectorAll("th, td")][column];
  if (!cell) return NaN;
  const shown = cell.dataset.v ?? (cell.querySelector("ins") ?? cell).textContent;
  const text = shown.replace(/[\u202f\s]/g, "").replace("\u2212", "-");
  if (text === "-" || text === "") return NaN;
  const units = text.match(/^(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:to.*)?$/);
  if (units?.slice(1).some(Boolean)) return [86400, 3600, 60, 1].reduce((sum, unit, i) => sum + unit * (units[i + 1] ?? 0), 0);
  const change = text.match(/^\d{4}-\d\d.*?([-+][\d.]+)%$/)?.[1]; // of a period
  const moment = /^\d+[-:]\d/.test(text);
  return /^[-+]?[\d.]/.test(text) && !(moment && !change) ? parseFloat(change ?? text) : text;
};
function compare(a, b) {
  const missing = (each) => typeof each === "number" && Number.isNaN(each);
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const bodies = [...table.tBodies];
      const rows = bodies.length > 1 ? bodies : [...bodies[0].rows];
      const keyed = rows.map((row) => [value(row.rows ? row.rows[0] : row, column), row]);
      const missing = ([key]) => typeof key === "number" && Number.isNaN(key);
      keyed.sort((a, b) => (missing(a) || missing(b) || up ? 1 : -1) * compare(a[0], b[0]));
      (bodies.length > 1 ? table : bodies[0]).append(...keyed.map(([, row]) => row));
    });
  });
}

// Lines: the value of each at the pointer, from the place of its path and the scale that its panel names.
const scale = (text) => {
  const [kind, ...numbers] = text.split(" ");
  const [low, high, start, end] = numbers.map(Number);
  const f = kind === "log" ? Math.log : (each) => each, back = kind === "log" ? Math.exp : (each) => each;
  return { value: (place) => back(f(low) + ((place - start) / (end - start)) * (f(high) - f(low))), start, end, low, high };
};
function points(path) {
  const found = [];
  let x = 0, y = 0;
  for (const [, command, numbers] of path.getAttribute("d").matchAll(/([MLHV])([-\d.,]+)/g)) {
    const parts = numbers.split(",").map(Number);
    if (command === "H") x = parts[0];
    else if (command === "V") y = parts[0];
    else [x, y] = parts;
    found.push([x, y]);
  }
  return found;
}
for (const panel of document.querySelectorAll(".panel[data-unit]")) {
  const lines = [...panel.querySelectorAll(".line[data-name]")].map((path) => [path.dataset.name, points(path)]);
  if (!lines.length) continue;
  const x = scale(panel.dataset.x), y = scale(panel.dataset.y), svg = panel.ownerSVGElement;
  const top = Math.min(y.start, y.end), tall = Math.abs(y.end - y.start), wide = x.end - x.start;
  const area = make("rect", { x: x.start, y: top, width: wide, height: tall, fill: "transparent" });
  const cursor = make("path", { class: "cursor", d: "" });
  panel.append(area, cursor);
  const zone = svg.dataset.zone;
  const write = (number) => number.toLocaleString("en-GB", { maximumSignificantDigits: 3 }).replaceAll(",", "\u202f");
  area.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    cursor.setAttribute("d", `M${at},${top}v${tall}`);
    const here = x.value(at);
    const when = { time: () => date(here, zone), wait: () => "after " + hours(here) }[svg.dataset.x]?.() ?? write(here);
    const texts = lines.map(([name, found]) => {
      const last = found.findLastIndex(([left]) => left <= at);
      const number = y.value((found[last] ?? found[0])[1]);
      return `${name}: ${panel.dataset.unit === "s" ? hours(number) : write(number) + " " + panel.dataset.unit}`;
    });
    show(event, [when, ...texts].join("\n"));
  });
  area.addEventListener("pointerleave", () => { cursor.setAttribute("d", ""); hide(); });
}
function date(second, zone) {
  const options = { timeZone: zone, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return new Date(second * 1000).toLocaleString("en-GB", options);
}

// The Gantt chart: one view of the same jobs, moved and zoomed by buttons, wheel with Ctrl, and dragging.
const chart = document.querySelector("svg[data-end]");
if (chart) {
  const { queues, names, jobs } = JSON.parse(document.getElementById("gantt-data").textContent);
  const plots = [...chart.querySelectorAll(".plot")];
  const whole = Number(chart.dataset.end), begin = Number(chart.dataset.begin), zone = chart.dataset.zone;
  const shownFirst = [Number(chart.dataset.from), Number(chart.dataset.to)];
  let [from, to] = shownFirst;
  const times = chart.querySelector(".times"), left = Number(plots[0].getAttribute("x")), wide = Number(plots[0].getAttribute("width"));
  const label = document.querySelector(".controls output");
  function look(low, high) {
    const length = Math.min(Math.max(high - low, 600), whole);
    from = Math.min(Math.max(low, 0), whole - length);
    to = from + length;
    for (const plot of plots) plot.setAttribute("viewBox", `${from} 0 ${length} ${plot.dataset.cores}`);
    const steps = [600, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 2592000];
    const step = steps.find((each) => length / each <= 9) ?? 2592000;
    const local = (second) => { // seconds by the zone's clock
      const parts = new Intl.DateTimeFormat("en-GB", { timeZone: zone, year: "numeric", month: "numeric", day: "numeric", hour: "numeric",
        minute: "numeric", second: "numeric", hourCycle: "h23" }).formatToParts(second * 1000);
      const number = Object.fromEntries(parts.map((part) => [part.type, Number(part.value)]));
      return Date.UTC(number.year, number.month - 1, number.day, number.hour, number.minute, number.second) / 1000;
    };
    const shift = local(begin + from) - Math.floor(begin + from);
    times.replaceChildren();
    for (let at = Math.ceil((begin + from + shift) / step) * step - shift; at <= begin + to; at += step) {
      const text = make("text", { class: "tick middle", x: left + ((at - begin - from) / length) * wide, y: times.dataset.y });
      const day = new Date(at * 1000).toLocaleString("en-GB", { timeZone: zone, month: "short", day: "numeric" });
      const clock = new Date(at * 1000).toLocaleString("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
      text.textContent = step >= 86400 || clock === "00:00" ? day : clock;
      times.append(text);
    }
    label.textContent = `${date(begin + from, zone)} to ${date(begin + to, zone)}`;
  }
  const zoom = (factor, centre = (from + to) / 2) => look(centre - (centre - from) * factor, centre + (to - centre) * factor);
  const actions = { in: () => zoom(0.5), out: () => zoom(2), left: () => look(from - (to - from) / 2, to - (to - from) / 2),
    right: () => look(from + (to - from) / 2, to + (to - from) / 2), first: () => look(...shownFirst), all: () => look(0, whole) };
  for (const button of document.querySelectorAll(".controls button")) button.addEventListener("click", actions[button.dataset.do]);
  const place = (event, plot) => {
    const box = plot.getBoundingClientRect();
    const share = (event.clientX - chart.getBoundingClientRect().left) / chart.getBoundingClientRect().width;
    return box.width ? from + ((share * chart.viewBox.baseVal.width - left) / wide) * (to - from) : from;
  };
  let pressed = null, marked = [];
  function unmark() {
    for (const each of marked) each.matches("rect") ? each.remove() : each.classList.remove("at");
    marked = [];
  }
  plots.forEach((plot) => {
    plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event, plot));
    }, { passive: false });
    plot.addEventListener("pointerdown", (event) => { pressed = [event.clientX, from, to]; plot.setPointerCapture(event.pointerId); });
    plot.addEventListener("pointerup", () => { pressed = null; });
    plot.addEventListener("pointerleave", () => { hide(); unmark(); });
    plot.addEventListener("pointermove", (event) => {
      if (pressed) {
        const moved = ((event.clientX - pressed[0]) / (chart.getBoundingClientRect().width * (wide / chart.viewBox.baseVal.width))) * (to - from);
        return look(pressed[1] - moved, pressed[2] - moved);
      }
      unmark();
      const job = event.target.dataset?.j;
      if (job === undefined) return hide();
      const [id, user, queue, cores, submit, ran, asked, ...waits] = jobs[job];
      plots.forEach((each, k) => {
        const path = each.querySelector(`[data-j="${job}"]`);
        if (!path) return;
        path.classList.add("at");
        const box = path.getBBox();
        const waited = make("rect", { class: "waited", x: submit, y: box.y, width: Math.max(waits[k], 0), height: Math.max(box.height, 1) });
        each.append(waited);
        marked.push(path, waited);
      });
      const lines = [`job ${id}${user ? ", user " + user : ""}`, `queue ${queues[queue]}, ${cores} cores`,
        `ran ${hours(ran)} of ${hours(asked)} asked for`, `submitted ${date(begin + submit, zone)}`,
        ...names.map((name, k) => `waited ${hours(waits[k])} ${names.length > 1 ? name : ""}`)];
      show(event, lines.join("\n"));
    });
  });
  look(from, to);
}
