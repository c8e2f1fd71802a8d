// What a reader sees of a page: figures too small, blocks and texts that lie on one another, what is cut off.
(() => {
  const box = (each) => {
    const found = each.getBoundingClientRect();
    return [found.left, found.top, found.right, found.bottom].map(Math.round);
  };
  const overlap = (a, b, i) => Math.min(a[i + 2], b[i + 2]) - Math.max(a[i], b[i]) > 2;
  const crossing = (a, b) => overlap(a, b, 0) && overlap(a, b, 1);
  const figures = [...document.querySelectorAll("figure")].filter((each) => each.checkVisibility());
  const found = { small: [], crossing: [], texts: [], outside: [], clipped: [] };
  const blocks = "header, figure, .scroll, section > p, section > ul, section > h2, section > h3, dl";
  const frames = [...document.querySelectorAll(blocks)].filter(
    (each) => each.checkVisibility() && !each.closest("details:not(.layer)") && !each.parentElement.closest("figure"));
  frames.forEach((a, i) => frames.slice(i + 1).forEach((b) => {
    if (!a.contains(b) && crossing(box(a), box(b))) found.crossing.push([a, b].map((each) => each.outerHTML.slice(0, 80)));
  }));
  for (const figure of figures) {
    const [left, top, right, bottom] = box(figure.querySelector("svg"));
    if (right - left < 250 || bottom - top < 60) found.small.push([figure.id, right - left, bottom - top]);
    const texts = [...figure.querySelectorAll("text")].filter((each) => each.textContent.trim() && getComputedStyle(each).opacity !== "0");
    texts.forEach((a, i) => {
      const own = box(a);
      const inside = own[0] >= left - 1 && own[2] <= right + 1 && own[1] >= top - 1 && own[3] <= bottom + 1;
      if (!inside) found.outside.push([figure.id, a.textContent]);
      texts.slice(i + 1).forEach((b) => {
        if (crossing(own, box(b))) found.texts.push([figure.id, a.textContent, b.textContent]);
      });
    });
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.checkVisibility()) continue;
    const frame = table.closest(".scroll") ?? table.parentElement;
    const scrolls = getComputedStyle(frame).overflowX === "auto";
    if (frame.scrollWidth > frame.clientWidth + 1 && !scrolls) found.clipped.push(table.outerHTML.slice(0, 90));
    for (const cell of table.querySelectorAll("th, td"))
      if (cell.scrollWidth > cell.clientWidth + 2) found.clipped.push(cell.textContent);
  }
  found.wide = document.documentElement.scrollWidth;
  found.figures = figures.map((each) => each.id);
  found.verdict = box(document.querySelector("h1"));
  return found;
})()
