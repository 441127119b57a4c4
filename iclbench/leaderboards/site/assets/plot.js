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
  const live = new Map(), still = new Map();

  // Numbers as in the drawing: −0.5, 2,000, 3·10⁻⁸.
  const scientific = (v, figures) => {
    const [mantissa, exponent] = v.toExponential(figures).split("e");
    const raised = `10${exponent.replace("+", "").replace(/./g, (c) => c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])}`;
    return Number(mantissa) === 1 ? raised : `${Number(mantissa)}·${raised}`;
  };
  const written = (v, figures) => (v !== 0 && (Math.abs(v) >= 1e6 || Math.abs(v) < 1e-3)
    ? scientific(v, figures) : Number(v.toPrecision(figures + 3)).toLocaleString("en", { maximumFractionDigits: 9 })).replace("-", "−");
  // As in the drawing, the ticks of an axis are all written in one way.
  const isPlain = (splits, isLog) => splits.every((v) => !v || (Math.abs(v) < (isLog ? 1e5 + 1 : 1e6) && Math.abs(v) >= (isLog ? 1e-3 : 1e-4)));
  const tick = (v, plain) => v === null ? "" : v === 0 ? "0" : plain ? v.toLocaleString("en", { maximumSignificantDigits: 6 }).replace("-", "−") : v === 1 || v === 10 ? String(v) : scientific(v, 3);
  const value = (v) => v === null || v === undefined ? "–" : written(v, 3);
  // Only powers of ten have grid lines on a logarithmic axis, unless a reader zooms in between them.
  const isPower = (v) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
  const rounded = (u, splits) => splits.filter(isPower).length > 1 ? splits.map((v) => isPower(v) ? v : null) : splits;
  // The page names the vertical axis above the plot.
  const axis = (a, size) => ({ label: a.above === undefined ? a.title : undefined, labelSize: 22, labelFont: "13px system-ui", font: "12px system-ui", size,
    stroke: color("soft"), grid: { stroke: color("line"), width: 1, ...(a.log && { filter: rounded }) }, ticks: { stroke: color("line"), width: 1, ...(a.log && { filter: rounded }) },
    ...(a.log && { filter: rounded }),
    ...(a.integers && !a.log && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6] }),
    values: (u, splits) => splits.map((v) => tick(v, isPlain(splits, a.log))) });
  const dashes = { dotted: [2, 4], sparse: [2, 9], dashed: [7, 4], dashdot: [8, 3, 2, 3], long: [14, 4] };

  // The marks of points, as in the drawing; a solid line has discs.
  const shapes = { dashed: "m-1.3-4.2h2.6v2.9h2.9v2.6h-2.9v2.9h-2.6v-2.9h-2.9v-2.6h2.9z", dashdot: "m-4.3-3.2h8.6l-4.3 7.4z",
    long: "m0-1.7 2.2-2.2 1.7 1.7-2.2 2.2 2.2 2.2-1.7 1.7-2.2-2.2-2.2 2.2-1.7-1.7 2.2-2.2-2.2-2.2 1.7-1.7z" };
  const marked = (shape) => (u, at, first, last) => {
    const path = new Path2D(), size = devicePixelRatio;
    for (let i = first; i <= last; i++) {
      if (typeof u.data[at][i] !== "number") continue;
      const [x, y] = [u.valToPos(u.data[0][i], "x", true), u.valToPos(u.data[at][i], "y", true)];
      path.addPath(new Path2D(`M0 0${shape}`), new DOMMatrix([size, 0, 0, size, x, y]));
    }
    return { fill: path, stroke: path, clip: null, flags: 3 };
  };

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
      points: { show: line.x.length <= 12 && !line.reference, size: 6, fill: color(`c${line.color}`), ...(shapes[line.dash] && { paths: marked(shapes[line.dash]) }) }, value: (u, v) => value(v) }));
    live.get(figure)?.destroy();
    canvas.replaceChildren();
    const drawn = new window.uPlot({
      width: Math.floor(box.width), height: Math.floor(box.height), legend: { show: false }, padding: [plot.y.above ? null : 24, null, null, null],
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

  const explore = async (figure) => {
    await load();
    const canvas = figure.querySelector(".canvas"), out = document.createElement("p");
    still.set(figure, [...canvas.childNodes]);
    out.className = "reading";
    out.textContent = "Drag to zoom, double-click to reset.";
    canvas.after(out);
    render(figure);
  };
  const stop = (figure) => {
    live.get(figure).destroy();
    live.delete(figure);
    figure.classList.remove("live");
    figure.querySelector(".reading").remove();
    figure.querySelector(".canvas").replaceChildren(...still.get(figure));
  };
  document.querySelectorAll("figure.plot .explore").forEach((by) => by.addEventListener("click", async () => {
    const figure = by.closest("figure");
    by.disabled = true;
    try {
      await (live.has(figure) ? stop(figure) : explore(figure));
      by.textContent = live.has(figure) ? "Back" : "Explore";
    } finally { by.disabled = false; }
  }));
  document.querySelectorAll("figure .legend button").forEach((by) => by.addEventListener("click", () => {
    const on = by.getAttribute("aria-pressed") === "false";
    const figure = by.closest("figure"), line = by.dataset.line;
    by.setAttribute("aria-pressed", String(on));
    // What is hidden stays so in the drawing that a chart has replaced.
    const drawings = live.has(figure) ? still.get(figure) : [figure];
    drawings.forEach((part) => part.querySelectorAll?.(`[data-line="${line}"]`).forEach((one) => {
      if (one !== by) one.classList.toggle("off", !on);
    }));
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
