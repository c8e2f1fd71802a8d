"use strict";
// The page of qconf explore. The server keeps the state; what it sends is shown, and what is changed here is sent to it.
// Names come from logs: they are set as text and attributes, never as markup.

const $ = (id) => document.getElementById(id);
const me = crypto.randomUUID();
let site = {}, state = null, numbers = null, ranges = null, shown = null, metric = "mean_wait", pending = new Map(), shape = "", locked = new Set();

/** An element with properties and children; those that begin with "on" are listeners. */
function h(name, about = {}, ...children) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(about)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) found.addEventListener(key.slice(2), value);
    else if (key in found && !key.startsWith("aria") && key !== "list") found[key] = value;
    else found.setAttribute(key, value === true ? "" : value);
  }
  found.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return found;
}
function lockIcon() {
  const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg"), path = document.createElementNS(space, "path");
  svg.setAttribute("viewBox", "0 0 12 14"); svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", "M2 6h8v7H2z M4 6V4a2 2 0 0 1 4 0v2"); svg.append(path);
  return svg;
}
function debounced(work, pause) {
  let timer;
  const later = (...given) => { clearTimeout(timer); timer = setTimeout(() => work(...given), pause); };
  later.now = (...given) => { clearTimeout(timer); work(...given); };
  return later;
}

// Requests

async function post(path, given) {
  try {
    const found = await fetch(`api/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ client: me, ...given }) });
    if (found.status === 403) banner("This page has no token any more: open the address that qconf explore printed.");
    return { ok: found.ok, status: found.status, ...(await found.json().catch(() => ({}))) };
  } catch {
    banner(GONE);
    return { ok: false, gone: true };
  }
}
const GONE = "qconf explore does not answer. Begin it again, and this page goes on; what you typed is kept.";
function banner(text) { $("banner").textContent = text; $("banner").hidden = !text; }
const problemText = (found) => (found.problems ?? []).map((each) => each.message).join("; ");

/** Send changed fields, with those that were refused before: only together they may fit. */
async function change(set) {
  for (const [path, value] of Object.entries(set)) pending.set(path, { value });
  const sent = Object.fromEntries([...pending].map(([path, each]) => [path, each.value]));
  const found = await post("change", { set: sent });
  if (found.gone || found.status === 403) return;
  for (const [path, value] of Object.entries(sent)) if (pending.get(path)?.value === value) {
    if (found.ok) pending.delete(path);
    else pending.get(path).problem = (found.problems ?? []).filter((each) => each.path === path || each.path.startsWith(`${path}[`)).map((each) => each.message).join("; ");
  }
  mistakes(found.ok ? [] : found.problems ?? []);
  showProblems();
}
function mistakes(problems) {
  const place = $("mistakes");
  place.hidden = !problems.length;
  if (!problems.length) return;
  const texts = problems.map((each) => h("li", {}, each.path && !each.message.startsWith(each.path) ? `${each.path}: ${each.message}` : each.message));
  place.replaceChildren(h("div", {}, h("b", {}, "Not simulated; the results below are of the state before."), h("ul", {}, texts)),
    h("button", { onclick: drop }, "Drop what I typed"));
}
function drop() { pending.clear(); mistakes([]); fill(true); }
async function other(given) {
  const found = await post("change", given);
  if (found.ok && ("named" in given || "state" in given)) drop();
  else if (found.ok) { pending.delete(given.back); if (!pending.size) mistakes([]); fill(true); } else if (!found.gone) mistakes(found.problems ?? []);
  return found;
}

// Fields

function showProblems() {
  for (const place of document.querySelectorAll("[data-path]")) {
    const problem = pending.get(place.dataset.path)?.problem ?? "";
    place.classList.toggle("wrong", Boolean(problem));
    place.querySelector(".problem").textContent = problem;
    for (const input of place.querySelectorAll("input, select, textarea")) input.setAttribute("aria-invalid", Boolean(problem));
  }
}
const allFields = () => [...state.document.queues, ...state.document.nodes].flatMap((each) => each.fields).concat(state.document.site, state.document.machine, state.document.pool);
const fieldOf = (path) => allFields().find((each) => each.path === path);
let count = 0;
function control(field) {
  const id = `f${count++}`, path = field.path, label = field.key;
  const soon = debounced((value) => { if (pending.has(path) || fieldOf(path)?.value !== value) change({ [path]: value }); }, 60), send = soon.now;
  const lock = h("button", { class: "quiet lock", type: "button", "aria-pressed": locked.has(path), "aria-label": `keep ${path} in a tune`, title: "Keep it in a tune",
    onclick: () => { locked.has(path) ? locked.delete(path) : locked.add(path); lock.setAttribute("aria-pressed", locked.has(path)); } }, lockIcon());
  let body, kind = "";
  if (field.kind === "range") {
    kind = "range";
    const ends = ["least", "most"].map((which) => h("input", { "aria-label": `${path}, ${which}`, "data-end": which, autocomplete: "off", placeholder: which === "most" ? "no end" : "",
      onchange: () => send(`[${ends[0].value.trim() || "null"}, ${ends[1].value.trim() || "null"}]`) }));
    body = h("div", { class: "pair" }, ends[0], h("span", { class: "dim" }, "to"), ends[1]);
  } else if (field.kind === "flag") body = h("span", { class: "flag" }, h("input", { id, type: "checkbox", onchange: (event) => send(String(event.target.checked)) }));
  else if (field.kind === "choice") body = h("select", { id, onchange: (event) => send(event.target.value) }, field.choices.map((each) => h("option", { value: each }, each)));
  else {
    const number = field.kind === "number";
    body = h("input", { id, type: number ? "number" : "text", min: number ? 0 : undefined, step: number ? (field.step ?? "any") : undefined, autocomplete: "off", placeholder: field.was === "" || !field.value ? "none" : "",
      oninput: number ? (event) => soon(event.target.value) : undefined, onchange: (event) => send(event.target.value) });
    if (field.quick) {
      kind = "whole";
      const by = (factor) => () => { body.value = Math.max(field.step, Math.round(Number(body.value) * factor / field.step) * field.step); send(body.value); };
      const buttons = [["half", 0.5], ["−10 %", 0.9], ["+10 %", 1.1], ["double", 2]].map(([name, factor]) => h("button", { type: "button", "aria-label": `${name} of ${path}`, onclick: by(factor) }, name));
      return wrap(h("div", {}, body, h("div", { class: "quick" }, buttons)));
    }
  }
  return wrap(body);
  function wrap(inner) {
    const name = field.kind === "range" ? h("span", {}, label) : h("label", { for: id }, label);
    return h("div", { class: `field ${kind}`, "data-path": path }, h("div", { class: "label" }, name, lock), inner, h("div", { class: "problem", role: "status" }));
  }
}
const section = (title, id, open, ...inner) => h("details", { id, open }, h("summary", {}, title), ...inner);

/** The whole of the fields; built anew only when there are other ones. */
function build() {
  const found = state.document, opened = new Set([...document.querySelectorAll("#fields details[open]")].map((each) => each.id)), first = !shape;
  const open = (id, usual = false) => (first ? usual : opened.has(id));
  const step = (field) => {
    if (field.path === "machine.cores") Object.assign(field, { quick: true, step: Number(found.machine.find((each) => each.key === "cores_per_node")?.value) || 1 });
    if (/^nodes\..*\.count$/.test(field.path)) Object.assign(field, { quick: true, step: 1 });
    if (field.key.startsWith("max_") || field.key.endsWith("cores") || field.key === "tier") field.step ??= 1;
    return field;
  };
  const fields = (list) => h("div", { class: "fields" }, list.map((each) => control(step(each))));
  const queues = found.queues.map((queue, i) => h("div", { class: "queue" },
    h("details", { id: `queue-${queue.name}`, open: open(`queue-${queue.name}`) }, h("summary", {}, queue.name, h("small", { "data-facts": queue.name })), fields(queue.fields)),
    h("div", { class: "moves" }, [[-1, "up", "↑"], [1, "down", "↓"]].map(([by, way, sign]) => h("button", { class: "quiet", "aria-label": `move ${queue.name} ${way}`, disabled: !found.queues[i + by],
      onclick: () => { const names = found.queues.map((each) => each.name); names.splice(i + by, 0, ...names.splice(i, 1)); other({ queues: names }); } }, sign)))));
  const nodes = found.nodes.map((each) => h("details", { id: `nodes-${each.name}`, open: open(`nodes-${each.name}`) }, h("summary", {}, `nodes ${each.name}`), fields(each.fields)));
  $("fields").replaceChildren(
    section("Load and period", "part-load", open("part-load", true), load()),
    section("Queues", "part-queues", open("part-queues", true), queues),
    section("Parts of the machine", "part-parts", open("part-parts", found.site[0].value !== "shared"), fields(found.site.slice(0, 1)), h("div", { id: "bars" }), found.pool.length ? fields(found.pool) : ""),
    section("Order", "part-order", open("part-order"), h("div", { id: "order" })),
    section("Reservations", "part-reservations", open("part-reservations"), fields(found.site.slice(1))),
    section("Machine", "part-machine", open("part-machine"), fields(found.machine), nodes),
  );
}
function load() {
  const slide = h("input", { id: "load", type: "range", min: 80, max: 130, step: 5, oninput: () => { $("load-value").textContent = `${slide.value} %`; send(); } });
  const send = debounced(() => other({ load: Number(slide.value) }), 200);
  const days = () => { if ($("from").value && $("to").value) other({ stretch: `${$("from").value}/${$("to").value}` }); };
  const stretch = h("select", { id: "stretch", onchange: () => { $("days").hidden = stretch.value !== "days"; if (stretch.value !== "days") other({ stretch: stretch.value }); } },
    [["all", "all jobs"], ["test", "the test period of a tune"], ["days", "some days"]].map(([value, text]) => h("option", { value }, text)));
  const day = (id, text) => h("input", { id, type: "date", "aria-label": text, min: site.first.slice(0, 10), max: site.last.slice(0, 10), onchange: days });
  return h("div", { class: "fields" },
    h("div", { class: "field whole" }, h("div", { class: "label" }, h("label", { for: "load" }, "load, of that of the log"), h("output", { id: "load-value", for: "load" })), slide),
    h("div", { class: "field whole" }, h("div", { class: "label" }, h("label", { for: "stretch" }, "jobs of")), stretch),
    h("div", { class: "field whole", id: "days", hidden: true }, h("div", { class: "pair" }, day("from", "from this day"), h("span", { class: "dim" }, "to"), day("to", "to before this day"))));
}
const busyWith = (place) => place?.contains(document.activeElement);

/** Let the fields have the values of the state, but those that are typed in or were refused. */
function fill(all = false) {
  const found = state.document;
  const now = JSON.stringify([found.queues.map((each) => [each.name, each.fields.map((field) => field.path)]), found.nodes.map((each) => each.name), found.pool.length]);
  if (now !== shape) { const at = document.activeElement?.getAttribute?.("aria-label"); build(); shape = now; if (at) document.querySelector(`#fields [aria-label="${CSS.escape(at)}"]`)?.focus(); }
  const byPath = new Map(allFields().map((field) => [field.path, field]));
  for (const place of document.querySelectorAll("[data-path]")) {
    const field = byPath.get(place.dataset.path);
    if (!field) continue;
    place.classList.toggle("edited", field.was !== null && field.was !== field.value);
    place.title = field.was !== null && field.was !== field.value ? `in force: ${field.was || "none"}` : "";
    if (pending.has(field.path) || (busyWith(place) && !all && place.querySelector("input[type=text], input:not([type])"))) continue;
    if (field.kind === "range") { place.querySelector("[data-end=least]").value = field.low; place.querySelector("[data-end=most]").value = field.high; }
    else if (field.kind === "flag") place.querySelector("input").checked = field.value === "true";
    else { const input = place.querySelector("input, select"); if (input.value !== field.value) input.value = field.value; }
  }
  for (const place of document.querySelectorAll("[data-facts]")) {
    const list = found.queues.find((each) => each.name === place.dataset.facts)?.fields ?? [], one = (key) => list.find((each) => each.key === key);
    place.textContent = [`${one("cores").low}–${one("cores").high || "∞"} cores`, `≤ ${one("walltime").high || "∞"}`, one("max_run").value && `max_run ${one("max_run").value}`].filter(Boolean).join(", ");
    place.classList.toggle("edited", list.some((each) => each.was !== null && each.was !== each.value));
  }
  if (!busyWith($("load")?.parentElement) || all) { $("load").value = state.load; $("load-value").textContent = `${state.load} %`; }
  const named = ["all", "test"].includes(state.stretch);
  $("stretch").value = named ? state.stretch : "days"; $("days").hidden = named;
  if (!named) [$("from").value, $("to").value] = state.stretch.split("/");
  bars(found.bars); order(found.order);
  if ($("yaml").dataset.edited !== "yes") $("yaml").value = state.text;
  showProblems();
}

// A divided machine: the border between two parts is moved

function bars(found) {
  const place = $("bars");
  if (!found.length) { place.replaceChildren(h("p", { class: "words" }, "All queues share one machine. Another mode divides it, at first by the work of each queue.")); return; }
  if (place.moving) return;
  const sizes = found.map((bar) => bar.parts.map((each) => each.size));
  /** What a partition is: cores, or so many nodes of each type. */
  const whole = (path) => {
    const own = found.flatMap((bar, k) => bar.parts.flatMap((each, i) => (each.path === path && (sizes[k][i] || !bar.type) ? [[bar.type, sizes[k][i]]] : [])));
    return own.length && !own[0][0] ? String(own[0][1]) : own.length ? `{${own.map(([type, size]) => `${JSON.stringify(type)}: ${size}`).join(", ")}}` : "0";
  };
  const send = debounced(() => change(Object.fromEntries(found.flatMap((bar, k) => bar.parts.filter((each, i) => each.size !== sizes[k][i])).map(({ path }) => [path, whole(path)]))), 120);
  const at = [...place.querySelectorAll(".edge")].indexOf(document.activeElement);
  place.replaceChildren(...found.map((bar, k) => h("div", {}, bar.type ? h("div", { class: "label dim" }, `nodes ${bar.type}`) : "", divided(bar, sizes[k], send))));
  if (at >= 0) place.querySelectorAll(".edge")[at]?.focus();
}
/** A bar of parts, whose sizes are changed where they are. */
function divided({ type, parts, unit, grid, total }, sizes, send) {
  const segments = parts.map((each) => h("div", { class: "part" }, h("b", {}, each.name), h("span", {})));
  segments.forEach((each, i) => each.style.setProperty("--c", `var(--q${i % 8})`));
  const edges = parts.slice(1).map((_, i) => h("div", { class: "edge", role: "slider", tabindex: 0, "aria-orientation": "horizontal", "aria-label": `border between ${parts[i].name} and ${parts[i + 1].name}${type && ` of nodes ${type}`}` }));
  const show = () => {
    segments.forEach((each, i) => { each.style.flexGrow = Math.max(sizes[i], 0); each.title = `${parts[i].name}: ${sizes[i]} ${unit}`; each.lastChild.textContent = sizes[i]; });
    edges.forEach((each, i) => { const least = sizes.slice(0, i).reduce((a, b) => a + b, 0); each.setAttribute("aria-valuemin", least); each.setAttribute("aria-valuemax", least + sizes[i] + sizes[i + 1]); each.setAttribute("aria-valuenow", least + sizes[i]); each.setAttribute("aria-valuetext", `${parts[i].name} ${sizes[i]} ${unit}, ${parts[i + 1].name} ${sizes[i + 1]} ${unit}`); });
  };
  const move = (i, from, by) => {
    const steps = Math.max(Math.min(Math.round(by / grid) * grid, from[1]), -from[0]);
    [sizes[i], sizes[i + 1]] = [from[0] + steps, from[1] - steps];
    show(); send();
  };
  const bar = h("div", { class: "parts" }, segments.flatMap((each, i) => [each, edges[i]]));
  edges.forEach((edge, i) => {
    edge.addEventListener("keydown", (event) => {
      const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!way) return;
      event.preventDefault();
      move(i, [sizes[i], sizes[i + 1]], way * (event.shiftKey ? 10 : 1) * Math.max(grid, Math.round(total / 100 / grid) * grid));
    });
    edge.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      edge.focus(); edge.setPointerCapture(event.pointerId); $("bars").moving = true;
      const start = event.clientX, from = [sizes[i], sizes[i + 1]];
      const onMove = (now) => move(i, from, (now.clientX - start) / bar.clientWidth * total);
      edge.addEventListener("pointermove", onMove);
      edge.addEventListener("lostpointercapture", () => { edge.removeEventListener("pointermove", onMove); $("bars").moving = false; }, { once: true });
    });
  });
  show();
  return bar;
}

// The order: one that has a name, a formula, or points of its terms

function order(found) {
  const place = $("order");
  if (busyWith(place) && place.value === found.value) return;
  if (busyWith(place) && document.activeElement.matches("[data-term]") && place.terms === found.terms.length) { place.value = found.value; $("formula").value = found.value; return; }
  place.value = found.value; place.terms = found.terms.length;
  const known = site.orders, terms = found.terms.map((each) => ({ ...each }));
  const send = debounced(() => other({ terms: terms.map((each) => [each.points, each.text]) }), 200);
  const choose = h("select", { id: "order-named", onchange: () => { if (choose.value) change({ order: JSON.stringify(choose.value) }); } },
    [...known.map((each) => h("option", { value: each.order }, each.name)), h("option", { value: "" }, "a formula")]);
  choose.value = known.some((each) => each.order === found.value) ? found.value : "";
  const formula = h("textarea", { id: "formula", rows: 4, spellcheck: false, onchange: () => change({ order: JSON.stringify(formula.value) }) });
  formula.value = pending.has("order") ? JSON.parse(pending.get("order").value) : found.value;
  const rows = terms.length < 2 ? [] : terms.map((each, i) => {
    const usual = each.points || 1, exact = h("input", { type: "number", step: "any", value: each.points, "data-term": i, "aria-label": `points of ${each.text}`, oninput: () => { each.points = Number(exact.value) || 0; send(); } });
    const slide = h("input", { type: "range", min: -2, max: 2, step: 0.05, value: 0, "data-term": i, "aria-label": `more or fewer points of ${each.text}`, oninput: () => { each.points = Number((usual * 10 ** slide.value).toPrecision(3)); exact.value = each.points; send(); } });
    return h("div", { class: "term" }, h("code", {}, each.text), slide, exact);
  });
  const add = h("select", { id: "order-add", onchange: () => { if (add.value) other({ terms: [...terms.map((each) => [each.points, each.text]), [1, add.value]] }); } },
    [h("option", { value: "" }, "add a term …"), ...site.factors.map((each) => h("option", { value: each.text }, each.name))]);
  place.replaceChildren(h("div", { class: "fields" },
    h("div", { class: "field whole" }, h("div", { class: "label" }, h("label", { for: "order-named" }, "order")), choose),
    h("div", { class: "field whole", "data-path": "order" }, h("div", { class: "label" }, h("label", { for: "formula" }, "formula")), formula, h("div", { class: "problem", role: "status" })),
    h("div", { class: "field whole" }, rows.length ? h("div", { class: "label" }, h("span", {}, "points of each term")) : "", rows),
    h("div", { class: "field whole" }, h("label", { class: "hidden", for: "order-add" }, "add a term to the order"), add)),
    found.words ? h("p", { class: "words" }, found.words) : "");
}

// Results

const KEYS = [["mean_wait", "Mean"], ["median_wait", "Median"], ["p95_wait", "95 %"], ["max_wait", "Longest"], ["mean_bounded_slowdown", "Slowdown"]];
const isWait = (key) => key.endsWith("_wait");
const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");
function text(key, value) {
  if (value === null || value === undefined) return "–";
  if (isWait(key) && Math.abs(value) < 3600) return Math.abs(value) < 60 ? `${fixed(value, 0)} s` : `${fixed(value / 60, Math.abs(value) < 600 ? 1 : 0)} min`;
  if (isWait(key)) return `${fixed(value / 3600, Math.abs(value) < 36000 ? 2 : 1)} h`;
  return key === "utilization_window" ? `${fixed(100 * value, 1)} %` : fixed(value, Math.abs(value) < 100 ? 2 : 0);
}
const signed = (key, value) => `${value > 0 ? "+" : ""}${text(key, value)}`;
const relative = (before, after) => (before ? (after - before) / before : 0);
const percent = (share) => `${share > 0 ? "+" : ""}${fixed(100 * share, Math.abs(share) < 0.0995 ? 1 : 0)} %`;
const look = (key, change, before) => (Math.abs(change) < 0.005 * Math.abs(before) || Math.abs(change) < 1e-9 ? "" : (change < 0) === (key !== "utilization_window") ? "better" : "worse");
const beside = () => (state.against ? `“${state.against}”` : "in force");

function results() {
  document.body.classList.toggle("old", !numbers);
  $("busy").hidden = Boolean(numbers && (ranges || !changed()));
  if (!numbers) return;
  const { before, after, recommended } = numbers.overall, same = !changed();
  $("headline").textContent = same ? `Mean wait ${text("mean_wait", after.mean_wait)}, as it is ${beside()}`
    : `Mean wait ${text("mean_wait", before.mean_wait)} → ${text("mean_wait", after.mean_wait)} (${percent(relative(before.mean_wait, after.mean_wait))})`;
  chance(same);
  $("tiles").replaceChildren(...[["mean_wait", "Mean wait"], ["max_wait", "Longest wait"], ["mean_bounded_slowdown", "Bounded slowdown"], ["utilization_window", "Utilization"]].map(([key, name]) => {
    const change = after[key] - before[key], found = ranges?.changes?.[key];
    const range = same ? "" : !ranges ? "on other days …" : found ? `on other days ${signed(key, found.low)} to ${signed(key, found.high)}${found.beyond ? "" : ": not beyond chance"}` : "";
    const was = same ? (recommended ? `recommended ${text(key, recommended[key])}` : "") : `${beside()} ${text(key, before[key])}${recommended ? `, recommended ${text(key, recommended[key])}` : ""}`;
    return h("dl", { class: "tile", style: "margin:0" }, h("dt", {}, name), h("dd", { class: "value" }, text(key, after[key]), same ? "" : h("small", { class: look(key, change, before[key]) }, ` ${signed(key, change)}`)), h("dd", { class: "was" }, was), h("dd", { class: "range" }, range));
  }));
  const notes = [...numbers.never.map((each) => [each, true]), ...state.warnings.map((each) => [each, false])];
  if (!same && numbers.losers.length) notes.unshift([`Worse off: ${numbers.losers.slice(0, 4).map((each) => each.name).join("; ")}${numbers.losers.length > 4 ? `; and ${numbers.losers.length - 4} more` : ""}`, true]);
  for (const rail of ranges?.rails ?? []) notes.push([`A tune would not recommend this: ${rail}`, true]);
  $("notes").replaceChildren(...notes.map(([each, bad]) => h("li", { class: bad ? "bad" : "" }, each)));
  table();
  if (shown !== numbers) { shown = numbers; moved(); charts(); }
}
const changed = () => Boolean(numbers && state) && JSON.stringify(numbers.overall.before) !== JSON.stringify(numbers.overall.after) || Boolean(ranges);
function chance(same) {
  const place = $("chance");
  if (same && !ranges) { place.textContent = `${numbers.jobs.toLocaleString("en")} jobs. Change a limit, and see who would have waited.`; return; }
  if (!ranges) { place.textContent = "Resampling the days, to see what is chance …"; return; }
  if (ranges.failed) { place.textContent = ranges.failed[0].toUpperCase() + ranges.failed.slice(1); return; }
  const { expected, low, high, sure, certain } = ranges.gain, what = numbers.objective.replaceAll("-", " ");
  const [look, words] = certain ? ["better", "Better beyond chance"] : high < 0 ? ["worse", "Worse beyond chance"] : ["", "Not beyond chance"];
  place.replaceChildren(h("b", { class: look }, words),
    `: over ${ranges.resamples} resamples of the days the gain in ${what} is ${percent(expected)} (${percent(low)} to ${percent(high)} for a month to come), ${Math.round(100 * sure)} % of them gain${ranges.resamples < ranges.of ? "; more are on their way" : ""}.`);
}
function table() {
  const titles = { queue: "by queue", nodes: "by nodes", size: "by size", user: "by users", qos: "by QOS" }, kinds = Object.keys(titles);
  const rows = numbers.groups, best = rows.some((each) => each.recommended), most = Math.min(Math.max(...rows.map((each) => Math.abs(relative(each.before[metric], each.after[metric]))), 0.1), 1);
  const row = (name, jobs, each, kind, key) => {
    const change = relative(each.before[metric], each.after[metric]), range = ranges?.changes?.[key], difference = each.after[metric] - each.before[metric];
    const bar = h("i", { class: change < 0 ? "less" : "more" });
    bar.style.width = `${Math.min(Math.abs(change) / most, 1) * 50}%`;
    return h("tr", { class: kind }, h("th", { scope: "row" }, name), h("td", {}, jobs.toLocaleString("en")), h("td", {}, text(metric, each.before[metric])), best ? h("td", {}, each.recommended ? text(metric, each.recommended[metric]) : "–") : null,
      h("td", {}, text(metric, each.after[metric])), h("td", { class: each.grown?.includes(metric) ? "worse" : change < -0.1 ? "better" : "" }, Math.abs(difference) < 1e-9 ? "–" : percent(change)),
      h("td", { class: "bar", "aria-hidden": "true" }, Math.abs(difference) < 1e-9 ? "" : bar),
      h("td", { class: "dim" }, range ? `${signed(metric, range.low)} to ${signed(metric, range.high)}${range.beyond ? "" : ", not beyond chance"}` : ""));
  };
  const head = ["", "jobs", beside(), ...(best ? ["recommended"] : []), "this state", "change", "", "change on other days"].map((each) => (each ? h("th", { scope: "col" }, each) : h("td")));
  const all = { before: numbers.overall.before, after: numbers.overall.after, recommended: numbers.overall.recommended };
  $("groups").replaceChildren(h("caption", { class: "hidden" }, `${metric.replaceAll("_", " ")} of all jobs and of groups of them`), h("thead", {}, h("tr", {}, head)), h("tbody", {}, row("all jobs", numbers.jobs, all, "all", metric)),
    ...kinds.map((kind) => rows.filter((each) => each.kind === kind)).filter((each) => each.length).map((list) => h("tbody", { "aria-label": titles[list[0].kind] },
      list.map((each) => row(each.name, each.jobs, each, "", each.kind === "queue" ? `${metric} of ${each.name}` : "")))));
}
function moved() {
  $("jobs").replaceChildren(...numbers.moved.map((each) => h("option", { value: each.job })));
  const rows = numbers.moved.map((each) => h("tr", {}, h("th", { scope: "row" }, h("button", { class: "quiet", onclick: () => explain(each.job) }, each.job)), h("td", {}, each.queue), h("td", {}, each.cores), h("td", {}, text("max_wait", each.before)), h("td", {}, text("max_wait", each.after)),
    h("td", { class: each.after > each.before ? "worse" : "better" }, signed("max_wait", each.after - each.before))));
  $("moved").replaceChildren(...(rows.length ? [h("caption", { class: "hidden" }, "Jobs that move most"), h("thead", {}, h("tr", {}, ["jobs that move most", "queue", "cores", beside(), "this state", "change"].map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, rows)] : []));
}
async function explain(job) {
  $("job").value = job;
  const found = await post("explain", { job });
  if (found.gone) return;
  if (!found.ok) { $("explained").replaceChildren(h("p", { class: "problem" }, problemText(found))); return; }
  const side = (title, each) => h("div", {}, h("b", {}, `${title}: ${text("max_wait", each.wait)}`), h("ol", {}, each.reasons.slice(0, 40).map(([when, why]) => h("li", {}, h("span", { class: "dim" }, `${when}: `), why)), each.reasons.length > 40 ? h("li", {}, `and ${each.reasons.length - 40} more`) : ""));
  $("explained").replaceChildren(h("p", {}, `Job ${found.job}`), h("div", { class: "two" }, side(beside(), found.before), side("this state", found.after)));
}

// Charts

const drawSoon = debounced(async () => {
  if (!numbers) return;
  const wide = Math.max(240, $("time").clientWidth - 90), { time, map } = numbers, whens = ["before", "after"];
  const colours = { domain: whens, range: ["var(--before)", "var(--after)"] };
  const names = { before: beside(), after: "this state" };
  const panel = (title, lines, scale = 1) => ({
    title, width: wide, height: 90, data: { values: lines.flatMap((line, k) => line.map((value, i) => ({ t: time.edges[i], v: value * scale, when: whens[k], says: `${new Date(time.edges[i]).toISOString().slice(0, 16).replace("T", " ")}\n${title}\n${names[whens[k]]}: ${fixed(value * scale, 1)}` }))) },
    mark: { type: "line", interpolate: "step-after", point: "transparent", strokeWidth: 1.6 },
    encoding: { tooltip: { field: "says" }, x: { field: "t", type: "temporal", title: null, scale: { type: "utc" }, axis: { format: "%b %-d", tickCount: Math.max(3, Math.round(wide / 110)) } }, y: { field: "v", type: "quantitative", title: null, axis: { tickCount: 3 } },
      color: { field: "when", type: "nominal", title: null, scale: colours, legend: { symbolType: "stroke", symbolSize: 260, labelExpr: `datum.label === 'before' ? ${JSON.stringify(names.before)} : 'this state'` } }, strokeDash: { field: "when", type: "nominal", title: null, legend: { symbolType: "stroke", symbolSize: 260 }, scale: { domain: whens, range: [[5, 3], [1, 0]] } } },
  });
  const terms = { cores: "core-hours", gpus: "GPU-hours", memory: "memory-hours", nodes: "node-hours" };
  await drawChart($("time"), { vconcat: [panel("in use, %", time.used, 100), panel(`queued work, ${terms[numbers.resource]}`, time.queued), panel("queue length, jobs", time.waiting), ...Object.entries(time.nodes).map(([name, lines]) => panel(`${name}, % in use`, lines, 100))], spacing: 14 });
  const cells = map.cells.map(([x, x2, y, y2, n]) => ({ x, x2, y, y2, n: Math.log1p(n), says: `${n.toLocaleString("en")} jobs` }));
  const [left, right] = [Math.min(...cells.map((each) => each.x)), Math.max(...cells.map((each) => each.x2))], [low, high] = [Math.min(...cells.map((each) => each.y)), Math.max(...cells.map((each) => each.y2))];
  const ranges = whens.flatMap((when) => map[when].map((each) => ({ when, name: each.name, x: Math.max(each.walltime[0], left), x2: Math.min(each.walltime[1], right), y: Math.max(each.cores[0], low), y2: Math.min(each.cores[1] + 0.5, high), says: `${each.name}, ${names[when]}\n${each.cores[0]} to ${Math.min(each.cores[1], Math.floor(high))} cores, more than ${text("max_wait", each.walltime[0])} to ${text("max_wait", Math.min(each.walltime[1], right))}` }))).filter((each) => each.x < each.x2 && each.y < each.y2);
  const axis = (field, title, domain, more = {}) => ({ field, type: "quantitative", title, scale: { type: "log", domain, nice: false }, axis: { grid: false, ...more } });
  const hours = "datum.value < 3600 ? datum.value / 60 + ' min' : datum.value < 86400 ? datum.value / 3600 + ' h' : datum.value / 86400 + ' d'";
  const x = axis("x", "requested walltime", [left, right], { values: [60, 600, 3600, 14400, 43200, 86400, 259200, 864000].filter((each) => each >= left && each <= right), labelExpr: hours });
  const encoding = { x, x2: { field: "x2" }, y: axis("y", "cores", [low, high], { tickCount: 5, format: "d" }), y2: { field: "y2" } };
  await drawChart($("map"), { width: wide, height: 300, layer: [
    { data: { values: cells }, mark: { type: "rect", fill: "var(--density)" }, encoding: { ...encoding, fillOpacity: { field: "n", type: "quantitative", legend: null, scale: { range: [0.08, 0.75] } }, tooltip: { field: "says" } } },
    { data: { values: ranges }, mark: { type: "rect", fillOpacity: 0, strokeWidth: 1.6 }, encoding: { ...encoding, stroke: { field: "when", type: "nominal", title: null, scale: colours, legend: null }, strokeDash: { field: "when", type: "nominal", legend: null, scale: { domain: whens, range: [[5, 3], [1, 0]] } } } },
    { data: { values: ranges.filter((each) => each.when === "after") }, mark: { type: "text", align: "left", baseline: "top", dx: 4, dy: 4, fontWeight: 600 }, encoding: { x, y: { ...encoding.y, field: "y2" }, text: { field: "name" }, tooltip: { field: "says" } } }] });
}, 60);
function charts() { if (numbers) drawSoon(); }
new ResizeObserver(() => charts()).observe($("results"));
for (const place of document.querySelectorAll(".chart")) place.addEventListener("mouseleave", () => hideTip());

// What the server sends

function received(message) {
  if (message.kind === "state") {
    const mine = message.client === me, again = state && message.serial !== state.serial;
    if (state && again && !mine && message.what) toast(`Another tab changed ${message.what}.`);
    if (!state || again) { numbers = ranges = null; }
    state = message;
    $("undo").disabled = !state.undo; $("redo").disabled = !state.redo;
    const choices = ["", ...state.named];
    $("against").replaceChildren(...choices.map((each) => h("option", { value: each }, each || "what is in force")));
    $("against").value = state.against;
    $("changes").replaceChildren(...state.document.changes.map((each) => h("li", {}, h("span", {}, `${each.path} `, h("del", {}, short(each.before)), " ", h("ins", {}, short(each.after))),
      h("button", { class: "quiet", "aria-label": `back to ${each.before || "none"} for ${each.path}`, onclick: () => other({ back: each.path }) }, "×"))));
    fill(); showNamed(); results();
  } else if (message.serial !== undefined && message.serial !== state?.serial) return;
  else if (message.kind === "numbers") { numbers = message; results(); }
  else if (message.kind === "ranges") { ranges = message; results(); }
  else if (message.kind === "failed") {
    $("busy").hidden = true;
    $("headline").textContent = "These jobs cannot all run";
    $("chance").textContent = "";
    $("notes").replaceChildren(h("li", { class: "bad" }, message.why), h("li", {}, "Change it further, or undo it: the state is kept."));
  } else if (message.kind === "tuning") tuning(message);
}
const short = (value) => (!value ? "none" : value.length > 40 ? `${value.slice(0, 38)} …` : value);
let seen = 0;
function toast(words) { const place = $("toast"); place.textContent = words; place.classList.add("seen"); clearTimeout(seen); seen = setTimeout(() => place.classList.remove("seen"), 6000); }
function listen() {
  const events = new EventSource("api/events");
  events.onmessage = (event) => { banner(""); received(JSON.parse(event.data)); };
  events.onerror = () => { banner(GONE); if (events.readyState === EventSource.CLOSED) setTimeout(listen, 2000); };
}

// States, links, tunes, exports

function dialog(button, name, opened = () => {}) { $(button).addEventListener("click", () => { opened(); $(name).showModal(); }); }
function showNamed() {
  const row = (name, title, forget) => h("li", {}, h("b", {}, title), h("button", { onclick: async () => { await other({ named: name }); $("states").close(); }, "aria-label": `open ${title}` }, "Open"), forget ? h("button", { class: "quiet", "aria-label": `forget ${title}`, onclick: () => post("name", { name, forget: true }) }, "Forget") : "");
  $("named").replaceChildren(row("", "in force", false), ...(site.recommended ? [row("recommended", `recommended: ${site.recommended}`, false)] : []), ...state.named.map((each) => row(each, each, true)));
}
async function packed() {
  const bytes = new TextEncoder().encode(JSON.stringify({ text: state.text, load: state.load, stretch: state.stretch }));
  const small = new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer());
  return btoa(String.fromCharCode(...small)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text());
}
async function follow() {
  if (!location.hash.startsWith("#s=")) return;
  try { await other({ state: await unpacked(location.hash.slice(3)) }); } catch { mistakes([{ path: "", message: "The link holds no state: part of it is missing." }]); }
  history.replaceState(null, "", location.pathname);
}
function tuning(message) {
  const running = message.share !== null && message.share !== undefined && !message.verdict;
  $("tune-progress").hidden = $("tune-stop").hidden = !running; $("tune-begin").disabled = running;
  if (running) { $("tune-progress").value = message.share; $("open-tune").textContent = `Tuning ${Math.round(100 * message.share)} %`; } else $("open-tune").textContent = "Tune from here";
  $("tune-state").replaceChildren(...(message.verdict ? [h("b", {}, `${message.verdict}: `), `${message.lead}. `, message.name ? `It is kept as “${message.name}”. ` : "", h("a", { href: `run/${message.place}/report.html`, target: "_blank", rel: "noopener" }, "Its report")] : [message.what ?? ""]));
  if (message.verdict && !$("tune").open) toast(`Tuned: ${message.verdict}.`);
}

$("undo").addEventListener("click", () => { pending.clear(); mistakes([]); post("step", { by: -1 }); });
$("redo").addEventListener("click", () => { pending.clear(); mistakes([]); post("step", { by: 1 }); });
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.target.matches("textarea, input:not([type=range], [type=checkbox], [type=radio])")) return;
  if (event.key === "z" && !event.shiftKey) { event.preventDefault(); $("undo").click(); }
  else if (event.key === "y" || (event.key.toLowerCase() === "z" && event.shiftKey)) { event.preventDefault(); $("redo").click(); }
});
$("against").addEventListener("change", () => post("name", { against: $("against").value }));
$("explain").addEventListener("submit", (event) => { event.preventDefault(); explain($("job").value.trim()); });
dialog("open-states", "states");
$("name-form").addEventListener("submit", async (event) => { event.preventDefault(); const found = await post("name", { name: $("name").value }); $("name-problem").textContent = found.ok ? "" : problemText(found); if (found.ok) $("name").value = ""; });
dialog("open-link", "link", async () => { $("address").value = `${location.origin}/#s=${await packed()}`; $("address").select(); });
$("copy").addEventListener("click", async () => { $("address").select(); try { await navigator.clipboard.writeText($("address").value); toast("Copied."); } catch { document.execCommand("copy"); } });
addEventListener("hashchange", follow);
dialog("open-tune", "tune", () => {
  $("locked").replaceChildren(...(locked.size ? [...locked].map((each) => h("li", {}, `${each} is locked `)) : [h("li", {}, "Nothing is locked: the locks are beside the fields. ")]));
});
$("tune-begin").addEventListener("click", async () => { const found = await post("tune", { fixed: [...locked] }); if (!found.ok) $("tune-state").textContent = problemText(found); });
$("tune-stop").addEventListener("click", () => post("tune", { stop: true }));
dialog("open-export", "export", () => { $("exported").replaceChildren(); $("export-problem").textContent = ""; });
$("export-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("exported").textContent = "Writing …"; $("export-problem").textContent = "";
  const found = await post("export", { name: $("export-name").value });
  if (!found.ok) { $("exported").replaceChildren(); $("export-problem").textContent = problemText(found); return; }
  $("exported").replaceChildren(h("p", {}, "Written to ", h("code", {}, found.directory), ". Nothing was loaded."), h("ul", {}, found.files.map((each) => h("li", {}, h("a", { href: `run/${found.place}/${each}`, target: "_blank", rel: "noopener" }, each)))),
    h("details", {}, h("summary", {}, `${found.notes.length} notes`), h("ul", {}, found.notes.map((each) => h("li", {}, each)))), h("pre", { tabindex: 0, "aria-label": "PLAN.md" }, found.plan));
});
const yaml = $("yaml"), edited = (yes) => { yaml.dataset.edited = yes ? "yes" : ""; $("yaml-apply").disabled = $("yaml-drop").disabled = !yes; };
yaml.addEventListener("input", () => edited(yaml.value !== state.text));
$("yaml-drop").addEventListener("click", () => { edited(false); yaml.value = state.text; $("yaml-problems").replaceChildren(); });
async function applyYaml() {
  const found = await post("change", { text: yaml.value });
  if (found.gone) return;
  $("yaml-problems").replaceChildren(...(found.problems ?? []).map((each) => h("li", {}, [each.line && `line ${each.line}`, each.path, each.message].filter(Boolean).join(": "))));
  if (found.ok) { edited(false); drop(); }
}
$("yaml-apply").addEventListener("click", applyYaml);
yaml.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) applyYaml(); });
$("metrics").append(...KEYS.map(([key, name]) => h("label", {}, h("input", { type: "radio", name: "metric", value: key, checked: key === metric, onchange: () => { metric = key; if (numbers) table(); } }), name)));

(async () => {
  const found = await fetch("api/site");
  site = await found.json();
  $("about").textContent = `${site.machine}, ${site.jobs.toLocaleString("en")} jobs from ${site.first.slice(0, 10)} to ${site.last.slice(0, 10)}`;
  document.title = `${site.machine}: qconf explore`;
  for (const name of site.readonly ? ["open-tune", "open-export"] : []) { $(name).disabled = true; $(name).title = "Nothing is written: begun with --readonly"; }
  $("export-title").textContent = `Export for ${site.target}`;
  listen();
  await follow();
  for (const note of site.notes) toast(note);
})();
