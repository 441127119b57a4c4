// Buttons that sort the tables of a page by a column: those with the class `sortable`.
"use strict";
(() => {
  // What a cell sorts by: its number if it begins with one, or else its text. Empty cells come last.
  const key = (cell) => {
    const text = (cell.dataset.v ?? cell.textContent).trim().replaceAll("−", "-").replaceAll(",", "");
    const number = Number.parseFloat(text);
    return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const isUp = heading.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", isUp ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [key(row.cells[column]), row]);
        rows.sort(([a], [b]) => (a === null || b === null ? compare(a, b) : (isUp ? 1 : -1) * compare(a, b)));
        body.append(...rows.map((pair) => pair[1]));
      });
    });
  }
})();
