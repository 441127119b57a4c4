// A task's tables: filters, order and columns, kept in the address; comparisons of the rows that are
// shown. What export.js writes of a table are its shown rows.
"use strict";
(() => {
  const sections = [...document.querySelectorAll("section.evaluation")];
  // The first table's settings have plain names in the address, those of others begin with their key.
  const settings = new URLSearchParams(location.hash.slice(1));

  class Table {
    constructor(section, prefix) {
      this.section = section;
      this.prefix = prefix;
      this.form = section.querySelector("form.filters");
      this.table = section.querySelector("table.board");
      this.body = this.table.tBodies[0];
      this.moreButton = section.querySelector(".more");
      this.columnsButton = section.querySelector(".columns");
      // Only the first rows of a long table are shown until a reader asks for all.
      this.most = Number(this.moreButton.dataset.most);
      this.fields = [...this.form.elements].filter((field) => field.name);
      this.first = new Map(this.fields.map((field) => [field.name, field.tagName === "SELECT" ? ([...field.options].find((o) => o.defaultSelected) ?? field.options[0]).value : ""]));
      this.sorted = "";
      // Whether the rows of each group, such as a track's, are together.
      this.grouped = true;
      this.listen();
      this.read();
    }

    listen() {
      this.form.addEventListener("input", () => { this.filter(); this.save(); });
      this.form.addEventListener("submit", (e) => e.preventDefault());
      this.section.querySelectorAll("[data-sort]").forEach((by) => by.addEventListener("click", () => {
        // The best come first, whichever end of the scale that is.
        const order = by.closest("th").getAttribute("aria-sort");
        const up = order ? order !== "ascending" : by.dataset.first !== "down";
        this.sort(by, up);
        this.filter();
        this.save();
      }));
      this.moreButton.addEventListener("click", () => {
        this.unpack();
        const next = this.dataRows().find((row, i, all) => row.hidden && i > 0 && !all[i - 1].hidden);
        this.most = Infinity;
        this.filter();
        next?.querySelector("a").focus();
      });
      this.columnsButton.addEventListener("click", () => {
        this.showColumns(!this.table.classList.contains("all"));
        this.save();
      });
      this.section.querySelectorAll("[data-export]").forEach((by) => by.addEventListener("click", () => this.export(by.dataset.export)));
    }

    // A long table keeps its further rows as text until they are needed.
    unpack() {
      const rest = this.section.querySelector("script.rest");
      if (!rest) return;
      this.body.insertAdjacentHTML("beforeend", rest.textContent);
      rest.remove();
    }

    dataRows() { return [...this.body.rows].filter((row) => row.dataset.id); }

    headings() { return [...this.body.querySelectorAll("tr.group")]; }

    showColumns(all) {
      this.table.classList.toggle("all", all);
      this.columnsButton.textContent = all ? "Fewer columns" : "More columns";
      this.columnsButton.setAttribute("aria-expanded", String(all));
      if (all) this.compare();
    }

    // A click on a heading sorts; a second click reverses the order. Ranks count within a group, so
    // sorting by them keeps the groups together.
    sort(by, up) {
      this.unpack();
      const heading = by.closest("th");
      const column = [...heading.parentNode.children].indexOf(heading);
      heading.parentNode.querySelectorAll("[aria-sort]").forEach((h) => h.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const isNumber = by.dataset.sort === "n";
      const isUnknown = (row) => isNumber && row.cells[column].dataset.v === "";
      const value = (row) => isNumber ? Number(row.cells[column].dataset.v) : row.cells[column].textContent;
      this.grouped = by.textContent === "rank";
      const group = (row) => this.grouped ? Number(row.dataset.group) : 0;
      const rows = this.dataRows().map((row) => [value(row), row]);
      rows.sort(([a, x], [b, y]) => group(x) - group(y) || isUnknown(x) - isUnknown(y) || (up ? 1 : -1) * (isNumber ? a - b : a.localeCompare(b)));
      this.body.append(...rows.map((pair) => pair[1]));
      for (const heading of this.headings()) {
        this.body.querySelector(`tr[data-id][data-group="${heading.dataset.group}"]`).before(heading);
      }
      this.sorted = `${up ? "" : "-"}${by.textContent}`;
    }

    filter() {
      const { form } = this;
      this.unpack();
      const words = form.find.value.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = this.dataRows(), groups = new Set();
      let shown = 0;
      for (const row of rows) {
        const { model, origin, track, dtype, budget } = row.dataset;
        const text = words.length ? `${row.cells[1].textContent} ${model}`.toLowerCase() : "";
        const fits = (!form.model.value || form.model.value === model)
          && (!form.origin.value || form.origin.value === origin)
          && (!form.track?.value || form.track.value === track)
          && (!form.dtype.value || form.dtype.value === dtype)
          && (form.budget.value === "" || Number(budget) <= Number(form.budget.value))
          && words.every((word) => text.includes(word));
        shown += fits;
        row.hidden = !fits || shown > this.most;
        if (!row.hidden) groups.add(row.dataset.group);
      }
      const isDivided = this.grouped && !form.track?.value && groups.size > 1;
      for (const heading of this.headings()) {
        heading.hidden = !isDivided || !groups.has(heading.dataset.group);
      }
      form.querySelector("output").value = `${shown} of ${rows.length} rows`;
      this.moreButton.textContent = `Show all ${shown}`;
      this.moreButton.hidden = shown <= this.most;
      if (this.table.classList.contains("all")) this.compare();
    }

    shownRows() { return this.dataRows().filter((row) => !row.hidden); }

    // The paired difference of every shown row to the one above it, unless their dtypes or budgets differ.
    async compare() {
      const rows = this.shownRows(), run = this.comparing = {};
      const digits = this.section.dataset.digits === "true";
      const facts = await Promise.all(rows.map((row) => window.paired.load(row.dataset.id)));
      if (run !== this.comparing) return;
      const isTrained = (row) => row.dataset.origin === "trained";
      const isApart = (row, above) => row.dataset.dtype !== above.dataset.dtype || (this.grouped ? row.dataset.group !== above.dataset.group
        : isTrained(row) && isTrained(above) && row.dataset.track !== above.dataset.track);
      rows.forEach((row, i) => {
        const cell = row.querySelector(".above");
        if (i === 0 || isApart(row, rows[i - 1])) { cell.textContent = ""; return; }
        // As in groups.py: this row minus the one above.
        const pair = [facts[i], facts[i - 1]];
        cell.textContent = window.paired.written(window.paired.difference(...pair), digits, window.paired.mark(...pair));
      });
    }

    save() {
      for (const field of this.fields) {
        const name = this.prefix + field.name;
        if (field.value === this.first.get(field.name)) settings.delete(name); else settings.set(name, field.value);
      }
      const set = (name, value) => { if (value) settings.set(this.prefix + name, value); else settings.delete(this.prefix + name); };
      set("sort", this.sorted);
      set("columns", this.table.classList.contains("all") ? "all" : "");
      history.replaceState(null, "", `#${settings}`);
    }

    read() {
      const get = (name) => settings.get(this.prefix + name);
      for (const field of this.fields) {
        const value = get(field.name);
        // The browser restores filters when a reader goes back to a page; the address counts.
        field.value = value ?? this.first.get(field.name);
        if (field.tagName === "SELECT" && field.selectedIndex < 0) field.value = this.first.get(field.name);
      }
      const wanted = get("sort");
      const by = wanted && [...this.section.querySelectorAll("[data-sort]")].find((b) => b.textContent === wanted.replace(/^-/, ""));
      if (by) this.sort(by, !wanted.startsWith("-"));
      if (by || this.fields.some((field) => get(field.name) !== null)) this.filter();
      if (get("columns") === "all") this.showColumns(true);
    }

    async export(kind) {
      // The differences to the rows above are those of the rows that are shown now.
      if (this.table.classList.contains("all")) await this.compare();
      window.exported.show(kind, this.section, this.shownRows());
    }
  }

  const tables = sections.map((section, i) => new Table(section, i === 0 ? "" : `${section.dataset.key}.`));
  window.addEventListener("hashchange", () => {
    // A link within the page has no settings.
    if (location.hash && !location.hash.includes("=")) return;
    [...settings.keys()].forEach((key) => settings.delete(key));
    new URLSearchParams(location.hash.slice(1)).forEach((value, key) => settings.set(key, value));
    tables.forEach((table) => { table.read(); table.filter(); });
  });
})();
