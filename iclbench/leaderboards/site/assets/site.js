// Sorting, filtering, the theme, and figures that Plotly redraws on request.
"use strict";
(() => {
  const root = document.documentElement;
  const plotly = document.currentScript.dataset.plotly;

  // The theme follows the system unless it is chosen here.
  const themes = ["automatic", "light", "dark"];
  const remembered = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem("theme", value); } catch { /* no storage */ } };
  const button = document.getElementById("theme");
  const setTheme = (name) => {
    if (name === "automatic") delete root.dataset.theme; else root.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
    document.querySelectorAll("figure.live").forEach(render);
  };
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme ?? "automatic") + 1) % 3];
    remember(next);
    setTheme(next);
  });

  // One menu open at a time, closed by Escape or a click elsewhere.
  const menus = [...document.querySelectorAll("nav .menu")];
  document.addEventListener("click", (e) => menus.forEach((m) => { if (!m.contains(e.target)) m.open = false; }));
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") menus.forEach((m) => { if (m.open) { m.open = false; m.firstElementChild.focus(); } });
  });

  // A long table keeps its further rows as text until they are needed.
  const unpack = (section) => {
    const rest = section.querySelector("script.rest");
    if (!rest) return;
    section.querySelector("table.board").tBodies[0].insertAdjacentHTML("beforeend", rest.textContent);
    rest.remove();
  };

  // A click on a heading sorts; a second click reverses the order.
  document.querySelectorAll("[data-sort]").forEach((by) => by.addEventListener("click", () => {
    const heading = by.closest("th");
    unpack(by.closest("section"));
    const column = [...heading.parentNode.children].indexOf(heading);
    const up = heading.getAttribute("aria-sort") !== "ascending";
    heading.parentNode.querySelectorAll("[aria-sort]").forEach((h) => h.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = heading.closest("table").tBodies[0];
    const value = by.dataset.sort === "n"
      ? (row) => Number(row.cells[column].dataset.v)
      : (row) => row.cells[column].textContent;
    const compare = by.dataset.sort === "n" ? (a, b) => a - b : (a, b) => a.localeCompare(b);
    const rows = [...body.rows].map((row) => [value(row), row]);
    rows.sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]));
    body.append(...rows.map((pair) => pair[1]));
    heading.closest("section").querySelector("form.filters")?.dispatchEvent(new Event("input"));
  }));

  document.querySelectorAll("form.filters:not(#choose)").forEach((form) => {
    const body = form.parentNode.querySelector("table.board").tBodies[0];
    const more = form.parentNode.querySelector(".more");
    // Only the first rows of a long table are shown until a reader asks for all.
    let most = Number(more.dataset.most);
    const filter = () => {
      unpack(form.parentNode);
      const rows = [...body.rows];
      const words = form.find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const { model, origin, track, dtype, budget } = row.dataset;
        const text = words.length ? row.cells[1].textContent.toLowerCase() : "";
        const fits = (!form.model.value || form.model.value === model)
          && (!form.origin.value || form.origin.value === origin)
          && (!form.track?.value || form.track.value === track)
          && (!form.dtype.value || form.dtype.value === dtype)
          && (form.budget.value === "" || Number(budget) <= Number(form.budget.value))
          && words.every((word) => text.includes(word));
        shown += fits;
        row.hidden = !fits || shown > most;
      }
      form.querySelector("output").value = `${shown} of ${rows.length} rows`;
      more.textContent = `Show all ${shown}`;
      more.hidden = shown <= most;
    };
    form.addEventListener("input", filter);
    more.addEventListener("click", () => {
      unpack(form.parentNode);
      const next = [...body.rows].find((row, i, all) => row.hidden && i > 0 && !all[i - 1].hidden);
      most = Infinity;
      filter();
      next?.querySelector("a").focus();
    });
    form.addEventListener("submit", (e) => e.preventDefault());
    // The browser restores filters when a reader goes back to a page.
    if (form.find.value || [...form.querySelectorAll("select")].some((s) => s.selectedIndex !== [...s.options].findIndex((o) => o.defaultSelected) && s.value)) filter();
  });

  // Figures are drawn in advance; Plotly is loaded when one is explored.
  let loading;
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = plotly;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
  const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  function render(figure) {
    const plot = JSON.parse(figure.querySelector("script").textContent);
    const axis = (a) => ({ title: { text: a.title }, type: a.log ? "log" : "linear", exponentformat: "power",
      gridcolor: color("line"), linecolor: color("soft"), zerolinecolor: color("line"), automargin: true });
    const data = plot.lines.map((line) => ({
      x: line.x, y: line.y, name: line.name, type: "scatter",
      mode: line.x.length <= 12 && !line.dotted ? "lines+markers" : "lines",
      line: { color: line.dotted ? color("soft") : color(`c${line.color}`), dash: line.dotted ? "dot" : "solid" },
      ...(line.low && { error_y: { type: "data", symmetric: false, thickness: 1,
        array: line.y.map((v, i) => line.high[i] === null ? 0 : line.high[i] - v),
        arrayminus: line.y.map((v, i) => line.low[i] === null ? 0 : v - line.low[i]) } }),
    }));
    const layout = { xaxis: axis(plot.x), yaxis: axis(plot.y), showlegend: false,
      paper_bgcolor: color("bg"), plot_bgcolor: color("bg"), font: { color: color("fg"), size: 12 },
      margin: { l: 60, r: 12, t: 12, b: 44 }, autosize: true };
    const canvas = figure.querySelector(".canvas");
    if (!figure.classList.contains("live")) canvas.replaceChildren();
    figure.classList.add("live");
    return window.Plotly.react(canvas, data, layout, { responsive: true, displaylogo: false });
  }
  const explore = (figure) => {
    const by = figure.querySelector(".explore");
    if (by.disabled) return;
    by.disabled = true;
    load().then(() => render(figure)).then(() => { by.textContent = "Interactive"; },
      () => { by.textContent = "Explore"; by.disabled = false; });
  };
  document.querySelectorAll("figure.plot .explore").forEach((by) => {
    by.addEventListener("click", () => explore(by.closest("figure")));
  });

  setTheme(themes.includes(remembered()) ? remembered() : "automatic");
})();
