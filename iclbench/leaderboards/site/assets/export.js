// The shown rows of a task's table as CSV, LaTeX or BibTeX, in a dialog to copy or download them from.
"use strict";
window.exported = (() => {
  const dialog = document.getElementById("export");
  const superscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻";
  const clean = (text) => text.replace(/\s+/g, " ").trim();
  const lowered = (text) => [...text].map((c) => "0123456789-"[superscripts.indexOf(c)]).join("");
  const ABOVE = "vs. row above";

  const heading = (cell) => (cell.querySelector("button") ?? cell.firstChild).textContent.trim();
  // Beside the shown columns come those without which two rows could look alike.
  const columnsOf = (table) => [...table.tHead.rows[0].cells]
    .map((cell, i) => ({ i, head: heading(cell), hasInterval: cell.querySelector("small")?.textContent === "95% interval", isShown: getComputedStyle(cell).display !== "none" }))
    .filter(({ head, isShown }) => isShown || ["origin", "track", "dtype"].includes(head));

  const scoreAndBounds = (cell) => {
    const [low, high = ""] = clean(cell.querySelector(".bounds").textContent).split(" … ");
    return [cell.querySelector(".score").textContent, low, high];
  };
  // A row's name with its arguments, a number without a remark, or any other text.
  const named = (cell) => cell.tagName === "TH" ? `${cell.querySelector("a").textContent} ${cell.querySelector(".args")?.textContent ?? ""}`
    : cell.classList.contains("number") ? cell.firstChild?.textContent ?? "" : cell.textContent;
  const texts = (cell) => cell.querySelector(".score") ? scoreAndBounds(cell)
    : [clean(named(cell)).replace(/^[●◐○◆▲■◇]\s*/, "")];

  // Numbers as programs read them: 1.1·10¹² is 1.1e12, 51,809 is 51809, and a minus is ASCII.
  const plainNumber = (text) => {
    const ascii = text.replaceAll("−", "-").replace(/·10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)$/, (_, power) => `e${lowered(power)}`);
    return /^[+-]?[\d,]+(\.\d+)?(e[+-]?\d+)?$/.test(ascii) ? ascii.replaceAll(",", "").replace("+", "") : null;
  };
  // A cell that a spreadsheet would run as a formula begins with an apostrophe.
  const csvCell = (text) => {
    const safe = plainNumber(text) ?? (/^[=+\-@]/.test(text) ? `'${text}` : text);
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  // For programs: a number and its bounds are cells of their own, and the marks of bounds as well.
  const asCsv = (table, rows) => {
    const columns = columnsOf(table);
    const heads = columns.flatMap(({ head, hasInterval }) => hasInterval ? [head, "low", "high", "interval mark"]
      : head === ABOVE ? [ABOVE, `${ABOVE}, low`, `${ABOVE}, high`, `${ABOVE}, mark`] : [head]);
    const numbers = (text) => [...text.matchAll(/(?:^|[+−-])[\d.]+(?:e[+−-]?\d+)?/g)].map(([v]) => v);
    const lines = rows.map((row) => columns.flatMap(({ i, head, hasInterval }) => {
      const parts = texts(row.cells[i]);
      if (head === ABOVE) return [...[...numbers(parts[0]), "", "", ""].slice(0, 3), parts[0].match(/ ([*†~])$/)?.[1] ?? ""];
      if (!hasInterval) return parts;
      const [score, low, high] = parts, mark = high.match(/ ([†‡~]+)$/)?.[1] ?? "";
      return [score, low, high.replace(/ [†‡~]+$/, ""), mark];
    }).concat(row.dataset.id));
    return [[...heads, "id"], ...lines].map((line) => line.map(csvCell).join(",")).join("\n") + "\n";
  };

  const special = { "&": "\\&", "%": "\\%", "#": "\\#", _: "\\_", $: "\\$", "{": "\\{", "}": "\\}", "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$", "…": "--", "·": "$\\cdot$", "†": "\\dag{}", "‡": "\\ddag{}", "≤": "$\\le$", "×": "$\\times$", "λ": "$\\lambda$", "–": "--", "\u00a0": "~" };
  const latexText = (text) => text.replace(/[&%#_${}\\~^−…·†‡≤×λ–\u00a0]/g, (c) => special[c])
    .replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+/g, (run) => `$^{${lowered(run)}}$`);
  // A number with an exponent, and no part of a word such as a digest.
  const scientific = /(?<![\w.])([+\-−]?\d+(?:\.\d+)?(?:e[+−-]?\d+|·10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+))(?![\w.])/;
  const typeset = (number) => {
    const [mantissa, exponent] = plainNumber(number).split("e");
    return `$${/^\+/.test(number) ? "+" : ""}${mantissa}\\times10^{${Number(exponent)}}$`;
  };
  const latexCell = (text) => text.replace(/^-(?=[\d.])/, "−").split(scientific)
    .map((part, i) => i % 2 ? typeset(part) : latexText(part)).join("");
  const asLatex = (table, rows, caption) => {
    const columns = columnsOf(table);
    const heads = columns.flatMap(({ head, hasInterval }) => hasInterval ? [head, "low", "high"] : [head]).map(latexCell);
    const lines = rows.map((row) => columns.flatMap(({ i }) => texts(row.cells[i])).map(latexCell));
    return ["\\begin{table}", "  \\centering", `  \\caption{${latexCell(caption)}}`, `  \\begin{tabular}{${heads.map((_, i) => i === 1 ? "l" : "r").join("")}}`, "    \\toprule",
      `    ${heads.join(" & ")} \\\\`, "    \\midrule", ...lines.map((cells) => `    ${cells.join(" & ")} \\\\`), "    \\bottomrule", "  \\end{tabular}", "\\end{table}", ""].join("\n");
  };

  // The tracks and dtypes of the rows, which follow from the filters.
  const kindsOf = (rows) => {
    const tracks = [...new Set(rows.map((row) => row.dataset.track))].filter(Boolean).sort();
    return { tracks, dtypes: [...new Set(rows.map((row) => row.dataset.dtype))].sort() };
  };
  const captionOf = (section, rows) => {
    const title = clean(document.querySelector("h1").firstChild.textContent);
    const { setting, measure, prompts } = section.dataset, { tracks, dtypes } = kindsOf(rows);
    const track = tracks.length ? `track${tracks.length > 1 ? "s" : ""} ${tracks.join(" and ")}, ` : "";
    const budget = `${track || "dtype "}${dtypes.join(" and ")}`;
    const sentences = [[title, setting].filter(Boolean).join(", "), budget, `${measure} with 95% intervals on ${Number(prompts).toLocaleString("en")} evaluation prompts`];
    return sentences.filter(Boolean).map((s) => `${s[0].toUpperCase()}${s.slice(1)}.`).join(" ");
  };
  const fileOf = (task, section, rows) => {
    const { setting, prompts } = section.dataset, { tracks, dtypes } = kindsOf(rows);
    return [task, setting.replaceAll("λ", "lambda"), prompts, "prompts", ...tracks, ...dtypes].join("-").toLowerCase()
      .replace(/[^\w.]+/g, "-").replace(/^-|-$/g, "");
  };

  const kinds = { csv: ["csv", "The shown rows as CSV"], latex: ["tex", "The shown rows as LaTeX (booktabs)"], bibtex: ["bib", "BibTeX"] };
  const show = (kind, section, rows) => {
    const task = document.querySelector("h1 code")?.textContent ?? clean(document.querySelector("h1").textContent);
    const table = section.querySelector("table.board");
    const text = kind === "bibtex" ? JSON.parse(document.getElementById("bibtex").textContent)
      : kind === "csv" ? asCsv(table, rows) : asLatex(table, rows, captionOf(section, rows));
    const [ending, title] = kinds[kind];
    dialog.querySelector("h2").textContent = title;
    dialog.querySelector("textarea").value = text;
    const link = dialog.querySelector(".download");
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `${kind === "bibtex" ? task : fileOf(task, section, rows)}.${ending}`;
    dialog.querySelector(".copy").textContent = "Copy";
    dialog.showModal();
  };

  dialog.querySelector(".copy").addEventListener("click", async (e) => {
    const area = dialog.querySelector("textarea");
    area.select();
    let done = true;
    try { await navigator.clipboard.writeText(area.value); } catch { done = document.execCommand("copy"); }
    e.target.textContent = done ? "Copied" : "Copy by hand";
  });
  return { show };
})();
