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

// What stands in a box of commands is copied by a button.
for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "copied";
  });
  block.before(button);
}
