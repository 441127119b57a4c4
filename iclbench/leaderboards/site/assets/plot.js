// Figures are drawn in advance. Their legends toggle lines; uPlot, loaded on request, zooms and reads values.
"use strict";
(() => {
  const root = document.documentElement;
  const source = document.currentScript.dataset.script;
  let loading;
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = source;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
  const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const live = new Map();

  // Numbers as in the drawing: −0.5, 2,000, 3·10⁻⁸.
  const scientific = (v, figures) => {
    const [mantissa, exponent] = v.toExponential(figures).split("e");
    const raised = `10${exponent.replace("+", "").replace(/./g, (c) => c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])}`;
    return Number(mantissa) === 1 ? raised : `${Number(mantissa)}·${raised}`;
  };
  const written = (v, figures) => (v !== 0 && (Math.abs(v) >= 1e6 || Math.abs(v) < 1e-3)
    ? scientific(v, figures) : Number(v.toPrecision(figures + 3)).toLocaleString("en", { maximumFractionDigits: 9 })).replace("-", "−");
  const plain = (v, isLog) => isLog && (v >= 1e4 || v < 1e-3) ? scientific(v, 0) : written(v, 3);
  const value = (v) => v === null || v === undefined ? "–" : written(v, 3);
  // As in the drawing, the page names a vertical axis above the plot where it has no room beside it.
  const isNarrow = matchMedia("(max-width: 600px)");
  // Only powers of ten have grid lines on a logarithmic axis, unless a reader zooms in between them.
  const isPower = (v) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
  const rounded = (u, splits) => splits.filter(isPower).length > 1 ? splits.map((v) => isPower(v) ? v : null) : splits;
  const axis = (a, size) => ({ label: a.above || (a.above !== undefined && isNarrow.matches) ? undefined : a.title, labelSize: 22, labelFont: "13px system-ui", font: "12px system-ui", size,
    stroke: color("soft"), grid: { stroke: color("line"), width: 1, ...(a.log && { filter: rounded }) }, ticks: { stroke: color("line"), width: 1, ...(a.log && { filter: rounded }) },
    ...(a.log && { filter: rounded }),
    ...(a.integers && !a.log && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6] }),
    values: (u, splits) => splits.map((v) => v === null ? "" : plain(v, a.log)) });
  const dashes = { dotted: [2, 4], dashed: [7, 4] };

  const render = (figure) => {
    const plot = JSON.parse(figure.querySelector("script").textContent);
    const canvas = figure.querySelector(".canvas");
    const box = canvas.getBoundingClientRect();
    const usable = (v, a) => v !== null && (!a.log || v > 0);
    const xs = [...new Set(plot.lines.flatMap((line) => line.x.filter((v) => usable(v, plot.x))))].sort((a, b) => a - b);
    const at = new Map(xs.map((v, i) => [v, i]));
    const columns = plot.lines.map((line) => {
      const column = new Array(xs.length).fill(undefined);
      line.x.forEach((v, i) => { if (at.has(v)) column[at.get(v)] = usable(line.y[i], plot.y) ? line.y[i] : null; });
      return column;
    });
    const series = plot.lines.map((line, i) => ({ label: line.name, spanGaps: false, width: 2,
      stroke: line.reference ? color("soft") : color(`c${line.color}`), dash: dashes[line.dash],
      show: figure.querySelector(`.legend [data-line="${i}"]`)?.getAttribute("aria-pressed") !== "false",
      points: { show: line.x.length <= 12 && !line.reference, size: 6 }, value: (u, v) => value(v) }));
    const previous = live.get(figure);
    previous?.destroy();
    canvas.replaceChildren();
    const drawn = new window.uPlot({
      width: Math.floor(box.width), height: Math.floor(box.height), legend: { show: false },
      cursor: { drag: { x: true, y: true, uni: 20 }, focus: { prox: 24 } }, focus: { alpha: 0.35 },
      scales: { x: { time: false, distr: plot.x.log ? 3 : 1 }, y: { distr: plot.y.log ? 3 : 1 } },
      axes: [axis(plot.x, 34), axis(plot.y, 50)],
      series: [{ label: plot.x.title, value: (u, v) => value(v) }, ...series],
      hooks: { setCursor: [(u) => read(figure, plot, u)] },
    }, [xs, ...columns], canvas);
    figure.classList.add("live");
    live.set(figure, drawn);
    return drawn;
  };
  // The line under the pointer and its value.
  const read = (figure, plot, u) => {
    const out = figure.querySelector(".reading");
    const { idx, left } = u.cursor;
    const near = u.series.findIndex((s, i) => i > 0 && s._focus);
    out.textContent = idx === null || left < 0 ? "Drag to zoom, double-click to reset." : `${plot.x.title} ${value(u.data[0][idx])}`
      + (near > 0 && u.data[near][idx] !== undefined ? ` · ${plot.lines[near - 1].name}: ${value(u.data[near][idx])}` : "");
  };

  document.querySelectorAll("figure.plot .explore").forEach((by) => by.addEventListener("click", async () => {
    const figure = by.closest("figure");
    by.disabled = true;
    try {
      await load();
      const out = document.createElement("p");
      out.className = "reading";
      out.textContent = "Drag to zoom, double-click to reset.";
      figure.querySelector(".canvas").after(out);
      render(figure);
      by.textContent = "Interactive";
    } catch { by.disabled = false; }
  }));
  document.querySelectorAll("figure .legend button").forEach((by) => by.addEventListener("click", () => {
    const on = by.getAttribute("aria-pressed") === "false";
    const figure = by.closest("figure"), line = by.dataset.line;
    by.setAttribute("aria-pressed", String(on));
    figure.querySelectorAll(`.canvas [data-line="${line}"]`).forEach((part) => part.classList.toggle("off", !on));
    live.get(figure)?.setSeries(Number(line) + 1, { show: on });
  }));
  // A line stands out while the pointer or the focus is on its name or on the line itself.
  document.querySelectorAll("figure.plot").forEach((figure) => {
    const near = (event, on) => {
      const line = event.target.closest("[data-line]")?.dataset.line;
      // The name of a hidden line lets no other fade.
      if (line === undefined || (on && !figure.querySelector(`.canvas [data-line="${line}"]:not(.off)`))) return;
      figure.querySelector(".canvas").classList.toggle("faded", on);
      figure.querySelectorAll(`.canvas [data-line="${line}"]`).forEach((part) => part.classList.toggle("near", on));
    };
    for (const on of ["mouseover", "focusin"]) figure.addEventListener(on, (event) => near(event, true));
    for (const off of ["mouseout", "focusout"]) figure.addEventListener(off, (event) => near(event, false));
  });
  document.addEventListener("theme", () => [...live.keys()].forEach(render));
  window.addEventListener("resize", () => live.forEach((drawn, figure) => {
    const box = figure.querySelector(".canvas").getBoundingClientRect();
    drawn.setSize({ width: Math.floor(box.width), height: Math.floor(box.height) });
  }));
})();
