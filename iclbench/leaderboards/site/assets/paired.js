// The paired difference of two records, from the facts that the site holds for each.
"use strict";
window.paired = (() => {
  const folder = `${document.currentScript.dataset.root}data/`;
  const known = new Map();

  // Called by data/ID.js: a page opened from a folder may load scripts but fetch nothing.
  const waiting = new Map();
  window.compared = (id, content) => waiting.get(id)?.(content);
  const load = (id) => {
    if (!known.has(id)) {
      known.set(id, new Promise((done, failed) => {
        waiting.set(id, (content) => done({ ...content, prompts: numbers(content.prompts) }));
        const script = document.createElement("script");
        script.src = `${folder}${id}.js`;
        script.onerror = failed;
        document.head.append(script);
      }));
    }
    return known.get(id);
  };
  const numbers = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);

  // The 97.5% quantile of Student's t: with t = √ν cot u², its density is proportional to u times sin u²
  // to the power of ν − 1, which is bounded for ν ≥ ½.
  const quantiles = new Map();
  const quantileOfT = (freedom) => {
    const nu = Math.min(freedom, 1e4), key = nu.toPrecision(4);
    if (quantiles.has(key)) return quantiles.get(key);
    const steps = 20000, square = (i) => (1 - i / steps) ** 2 * Math.PI / 2;
    const density = (i) => (1 - (i + 0.5) / steps) * Math.sin(square(i + 0.5)) ** (nu - 1);
    let total = 0, sum = 0, i = 0;
    for (let j = 0; j < steps; j++) total += density(j);
    while (sum + density(i) < 0.95 * total) sum += density(i++);
    const value = Math.sqrt(nu) / Math.tan(square(i + (0.95 * total - sum) / density(i)));
    quantiles.set(key, value);
    return value;
  };
  // As `Spread` in paired.py: prompts are paired, the seeds of both rows independent.
  const halfWidth = (a, b) => {
    const differences = Array.from(a.prompts, (v, i) => v - b.prompts[i]);
    const n = differences.length, average = differences.reduce((s, v) => s + v, 0) / n;
    const measured = differences.reduce((s, v) => s + (v - average) ** 2, 0) / (n * (n - 1));
    const prompts = Math.max(measured, a.both + b.both);
    const rounding = 1e-14 * (a.alone + b.alone) + (1e-12 * Math.max(Math.abs(a.mean), Math.abs(b.mean))) ** 2;
    const variance = prompts + a.seeds + b.seeds;
    const squares = prompts ** 2 / (n - 1) + a.squares + b.squares;
    const freedom = squares > 0 ? variance ** 2 / squares : n - 1;
    const t = freedom >= 0.5 ? quantileOfT(freedom) : NaN;
    const wide = quantileOfT(n - 1) ** 2 * prompts + a.wide + b.wide;
    return t * Math.sqrt(Math.max(variance, wide / t ** 2) + rounding);
  };
  const relative = (row) => ({
    mean: 1,
    alone: row.alone / row.mean ** 2,
    seeds: row.seeds / row.mean ** 2,
    both: row.both / row.mean ** 2,
    squares: row.squares / row.mean ** 4,
    wide: row.wide / row.mean ** 2,
    prompts: Array.from(row.prompts, (v) => v / row.mean),
  });
  // As `difference` in paired.py: means of values of one sign must differ by their ratio, too.
  const difference = (a, b) => {
    const differences = Array.from(a.prompts, (v, i) => v - b.prompts[i]), mean = a.mean - b.mean;
    if (differences.length < 2) return { mean, low: -Infinity, high: Infinity, differences };
    let half = halfWidth(a, b);
    if (a.sign * b.sign > 0) {
      const u = halfWidth(relative(a), relative(b)), logarithm = Math.log(a.mean / b.mean);
      half = Math.max(half, Math.abs(logarithm ? mean / logarithm : a.mean) * (u + u ** 2 / 2));
    }
    return Number.isFinite(half) ? { mean, low: mean - half, high: mean + half, differences }
      : { mean, low: NaN, high: NaN, differences };
  };
  // As `difference` in formats.py.
  const written = ({ mean, low, high }, isDigits, mark) => {
    if (!Number.isFinite(mean)) return "";
    const number = (v) => {
      const size = Math.abs(v);
      const text = isDigits ? size.toFixed(2) : String(Number(size.toPrecision(3)));
      return (v < 0 && Number(text) ? "−" : "+") + text.replaceAll("-", "−");
    };
    if (!Number.isFinite(low)) return `${number(mean)}, no interval`;
    if (isDigits && [mean, low, high].every((v) => number(v) === "+0.00")) return "0.00";
    const isSure = !mark && (low > 0 || high < 0);
    // A significant bound that rounds to 0 must not seem to be 0.
    const bound = (v) => isDigits && isSure && Number(v.toFixed(2)) === 0
      ? (v < 0 ? "−" : "+") + String(Number(Math.abs(v).toPrecision(1))).replaceAll("-", "−") : number(v);
    const end = mark ? ` ${mark}` : isSure ? " *" : "";
    return `${number(mean)} [${bound(low)}, ${bound(high)}]${end}`;
  };
  // As `difference_mark` in formats.py.
  const mark = (a, b) => [a.mark, b.mark].includes("†") ? "†" : a.mark || b.mark;
  return { load, difference, mark, written };
})();
