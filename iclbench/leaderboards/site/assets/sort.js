// Sorts tables of numbers: each heading gets a button. Lines of reference (.scale) stay at the end,
// and cells without a number come after those with one.
"use strict";
(() => {
  // A cell's own value, or the first number of its text, such as 28k or −1.5e−3.
  const number = (cell) => {
    if (cell.dataset.v !== undefined) return cell.dataset.v === "" ? NaN : Number(cell.dataset.v);
    const text = cell.textContent.trim().replaceAll("−", "-").replaceAll(",", "");
    const [, digits, unit] = text.match(/^(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)([kM]?)/) ?? [null, NaN, ""];
    return Number(digits) * { "": 1, k: 1e3, M: 1e6 }[unit];
  };
  const bodyRows = (table) => [...table.tBodies[0].rows].filter((row) => !row.classList.contains("scale"));

  // The headings of single columns with their columns: in the last line, and those that reach it.
  const headings = (table) => {
    const lines = [...table.tHead.rows], last = lines.at(-1);
    const tall = lines.slice(0, -1).flatMap((line) => [...line.cells].filter((cell) => cell.rowSpan > 1));
    return [...tall, ...last.cells].map((heading, column) => ({ heading, column }));
  };

  const sort = (table, heading, column) => {
    const order = heading.getAttribute("aria-sort"), rows = bodyRows(table);
    const values = new Map(rows.map((row) => [row, number(row.cells[column])]));
    const isText = [...values.values()].every(Number.isNaN);
    const up = order ? order !== "ascending" : heading.dataset.first ? heading.dataset.first === "up" : isText;
    table.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const compared = (a, b) => {
      if (isText) return a.cells[column].textContent.localeCompare(b.cells[column].textContent);
      return values.get(a) - values.get(b);
    };
    const known = rows.filter((row) => isText || !Number.isNaN(values.get(row)));
    const unknown = rows.filter((row) => !known.includes(row));
    known.sort((a, b) => (up ? 1 : -1) * compared(a, b));
    table.tBodies[0].prepend(...known, ...unknown);
  };

  window.makeSortable = (root) => {
    for (const table of root.querySelectorAll("table.heat, table.results, table.shades")) {
      const isEven = table.tHead && table.tBodies.length === 1 && bodyRows(table).every((row) => row.cells.length === headings(table).length);
      if (!isEven || bodyRows(table).length < 3) continue;
      for (const { heading, column } of headings(table)) {
        if (heading.querySelector("button")) continue;
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-label", `Sort by ${(heading.querySelector("a") ?? heading).textContent.trim()}`);
        button.addEventListener("click", () => sort(table, heading, column));
        heading.append(" ", button);
      }
    }
  };
  window.makeSortable(document);
})();
