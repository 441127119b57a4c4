// The switches of the home page's table: origin, dtype and track, kept in the address.
"use strict";
(() => {
  const form = document.getElementById("switches");
  const shown = document.getElementById("matrix");
  const tables = [...document.querySelectorAll("script.matrix")];
  const names = ["origin", "dtype", "track"].filter((name) => form[name]);
  const wanted = () => Object.fromEntries(names.map((name) => [name, form[name].value]));
  const fits = (table, choice) => names.every((name) => (table.dataset[name] ?? "") === choice[name]);

  const show = () => {
    const choice = wanted();
    const table = tables.find((t) => fits(t, choice));
    shown.innerHTML = table ? table.textContent : "";
    window.makeSortable(shown);
    const out = form.querySelector("output");
    const rows = shown.querySelectorAll("tbody tr:not(.scale)").length;
    out.value = table ? `${rows} model${rows === 1 ? "" : "s"}` : `No ${choice.origin} rows in ${choice.dtype}${choice.track ? `, ${choice.track}` : ""}`;
    // Choices that have no rows can't be made.
    for (const name of names) {
      // Another origin takes a dtype and a track of its own.
      const rest = name === "origin" ? {} : choice;
      for (const option of form[name].options) option.disabled = !tables.some((t) => names.every((n) => n === name ? (t.dataset[n] ?? "") === option.value : !(n in rest) || (t.dataset[n] ?? "") === rest[n]));
    }
  };
  const save = () => {
    const first = tables[0].dataset, choice = wanted();
    const changed = names.filter((name) => choice[name] !== (first[name] ?? ""));
    const query = new URLSearchParams(changed.map((name) => [name, choice[name]])).toString();
    history.replaceState(null, "", query ? `#${query}` : "#all");
  };
  const read = () => {
    // A link within the page has no settings; #all are those of the first table.
    if (shown.innerHTML && location.hash && location.hash !== "#all" && !location.hash.includes("=")) return;
    const query = new URLSearchParams(location.hash.slice(1)), first = tables[0].dataset;
    for (const name of names) {
      const value = query.get(name) ?? first[name] ?? "";
      if ([...form[name].options].some((o) => o.value === value)) form[name].value = value;
    }
    show();
  };
  form.addEventListener("input", (e) => {
    // Another origin may have no rows of the dtype or track that was chosen.
    if (e.target.name === "origin" && !tables.some((t) => fits(t, wanted()))) {
      const other = tables.find((t) => t.dataset.origin === form.origin.value);
      for (const name of names) form[name].value = other.dataset[name] ?? "";
    }
    show();
    save();
  });
  form.addEventListener("submit", (e) => e.preventDefault());
  window.addEventListener("hashchange", read);
  read();
})();
