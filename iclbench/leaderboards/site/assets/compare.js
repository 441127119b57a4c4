// Two records of a task beside each other, with the paired difference of their scores.
"use strict";
(() => {
  const evaluations = JSON.parse(document.getElementById("choices").textContent);
  const form = document.getElementById("choose");

  const evaluation = () => evaluations.find((e) => e.key === form.evaluation.value);
  const fill = (a, b) => {
    const { rows, usual } = evaluation();
    const options = () => rows.map((row) => new Option(row.name, row.id));
    form.a.replaceChildren(...options());
    form.b.replaceChildren(...options());
    form.a.value = rows.some((r) => r.id === a) ? a : usual[0];
    // Beside a row, the best other one of its track.
    const first = rows.find((r) => r.id === form.a.value);
    const others = [...usual.map((id) => rows.find((r) => r.id === id)), ...rows].filter((r) => r !== first);
    const other = others.find((r) => r.track === first.track) ?? others[0] ?? first;
    form.b.value = rows.some((r) => r.id === b) ? b : other.id;
  };

  const withMinus = (number) => number.replaceAll("-", "−");
  const quantile = (sorted, q) => {
    const at = q * (sorted.length - 1), low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  };
  const show = async () => {
    const { rows, digits, lower, metric, score } = evaluation();
    const [a, b] = [form.a.value, form.b.value].map((id) => rows.find((r) => r.id === id));
    history.replaceState(null, "", `#a=${a.id}&b=${b.id}`);
    const [x, y] = await Promise.all([window.paired.load(a.id), window.paired.load(b.id)]);
    if (form.a.value !== a.id || form.b.value !== b.id) return;
    const paired = window.paired.difference(x, y), { differences } = paired;
    const higher = digits || !lower;
    const written = window.paired.written(paired, digits, window.paired.mark(x, y));
    const isSure = written.endsWith("*"), better = (paired.mean > 0) === higher;
    const verdict = window.paired.mark(x, y) === "†" ? "One seed: no model is called better. "
      : window.paired.mark(x, y) ? "Few values or seeds dominate a mean: no model is called better. "
      : !Number.isFinite(paired.low) ? "Too few seeds or prompts for a test. "
      : isSure ? `The ${better ? "first" : "second"} is better. ` : "No significant difference. ";
    document.getElementById("verdict").textContent = !Number.isFinite(paired.mean)
      ? "A score that is not finite is worse than any that is."
      : `${verdict}${digits ? "Digits gained by the first" : `First − second, ${metric}`}: ${written.replace(/ [*†~]$/, "")}.`;
    const gain = higher ? 1 : -1;
    const wins = differences.filter((d) => gain * d > 0).length, losses = differences.filter((d) => gain * d < 0).length;
    // A mean can favor one model and most prompts the other.
    const favored = Math.sign(gain * paired.mean), winner = Math.sign(wins - losses);
    if (favored * winner < 0) {
      const [mean, most] = favored > 0 ? ["first", "second"] : ["second", "first"];
      document.getElementById("verdict").append(` The mean favors the ${mean}, but the ${most} wins more prompts: large differences on few prompts decide the mean.`);
    }
    const warning = document.getElementById("apart");
    warning.hidden = !(a.trained && b.trained) || a.track === b.track;
    warning.textContent = `Different budgets: ${a.trained} (first); ${b.trained} (second). Rows of different tracks are not ranked against each other.`;
    const percent = (n) => `${(100 * n / differences.length).toFixed(1)}%`;
    const cells = [
      [a.name, b.name], [a.score, b.score], [a.interval, b.interval], [a.median, b.median], [a.worst, b.worst],
      [a.notes, b.notes], [a.seeds || "", b.seeds || ""], [a.parameters?.toLocaleString("en") ?? "", b.parameters?.toLocaleString("en") ?? ""],
      [a.budget, b.budget], [percent(wins), percent(losses)],
    ];
    const heads = document.getElementById("both").tBodies[0].rows;
    [[1, score], [3, `median ${metric}`], [4, `1% worst ${metric}`]].forEach(([i, text]) => { heads[i].cells[0].textContent = text; });
    [...document.getElementById("both").tBodies[0].rows].forEach((row, i) => {
      row.cells[1].textContent = cells[i][0];
      row.cells[2].textContent = cells[i][1];
    });
    histogram(differences, digits ? "digits gained by the first" : `first − second, ${metric}`);
  };

  const histogram = (differences, title) => {
    const box = document.getElementById("histogram"), values = differences.filter(Number.isFinite);
    if (values.length === 0) {
      box.innerHTML = "<p>The difference is finite on no prompt.</p>";
      return;
    }
    const sorted = Float64Array.from(values).sort();
    let [low, high] = [quantile(sorted, 0.005), quantile(sorted, 0.995)];
    if (high - low < 1e-9) { low -= 0.5; high += 0.5; }
    // Tails in the bars at the ends would look like further peaks.
    const below = values.filter((v) => v < low).length, above = values.filter((v) => v > high).length;
    const bins = new Array(36).fill(0);
    for (const v of values) {
      if (v >= low && v <= high) bins[Math.min(35, Math.floor((v - low) / (high - low) * 36))] += 1;
    }
    const top = Math.max(...bins), width = 392 / 36;
    const x = (v) => 48 + (v - low) / (high - low) * 392;
    const bars = bins.map((n, i) => `<rect class="bar" x="${(48 + i * width).toFixed(1)}" width="${(width - 1).toFixed(1)}" y="${(250 - 230 * n / top).toFixed(1)}" height="${(230 * n / top).toFixed(1)}"/>`);
    const labels = [low, low < 0 && high > 0 ? 0 : (low + high) / 2, high].map((v, i) => `<text x="${i === 2 ? 458 : x(v)}" y="270" text-anchor="${i === 2 ? "end" : "middle"}">${withMinus(String(Number(v.toPrecision(2))))}</text>`);
    const zero = low < 0 && high > 0 ? `<line class="zero" x1="${x(0)}" x2="${x(0)}" y1="14" y2="250"/>` : "";
    const tails = [below && `<text x="48" y="12">← ${below} below</text>`, above && `<text x="440" y="12" text-anchor="end">${above} above →</text>`].filter(Boolean);
    box.innerHTML = `<svg viewBox="0 0 460 300" role="img" aria-label="Histogram of the difference on each prompt; ${below} prompts lie below it and ${above} above">${bars.join("")}${zero}<path class="axis" d="M48 250H440"/>${labels.join("")}${tails.join("")}<text x="40" y="24" text-anchor="end">${top}</text><text x="40" y="254" text-anchor="end">0</text><text x="244" y="292" text-anchor="middle"></text></svg>`;
    box.querySelector("text:last-of-type").textContent = title;
  };

  const wanted = () => new URLSearchParams(location.hash.slice(1));
  const start = () => {
    const [a, b] = [wanted().get("a"), wanted().get("b")];
    const evaluated = evaluations.find((e) => e.rows.some((r) => r.id === a));
    if (evaluated) form.evaluation.value = evaluated.key;
    fill(a, b);
    show();
  };
  form.evaluation.addEventListener("input", () => { fill(); show(); });
  form.a.addEventListener("input", show);
  form.b.addEventListener("input", show);
  form.addEventListener("submit", (e) => e.preventDefault());
  document.getElementById("swap").addEventListener("click", () => {
    [form.a.value, form.b.value] = [form.b.value, form.a.value];
    show();
  });
  // A link within the page chooses no rows.
  window.addEventListener("hashchange", () => { if (!location.hash || location.hash.includes("=")) start(); });
  start();
})();
