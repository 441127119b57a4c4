// The theme, the menus, and the search over models, tasks and runs.
"use strict";
(() => {
  const root = document.documentElement;
  const { root: base, index } = document.currentScript.dataset;

  // The theme follows the system unless it is chosen here.
  const themes = ["auto", "light", "dark"];
  const remembered = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem("theme", value); } catch { /* no storage */ } };
  const button = document.getElementById("theme");
  const setTheme = (name) => {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
    document.dispatchEvent(new Event("theme"));
  };
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme ?? "auto") + 1) % 3];
    remember(next);
    setTheme(next);
  });
  setTheme(themes.includes(remembered()) ? remembered() : "auto");

  // One menu open at a time, closed by Escape or a click elsewhere.
  const menus = [...document.querySelectorAll("nav .menu")];
  document.addEventListener("click", (e) => menus.forEach((m) => { if (!m.contains(e.target)) m.open = false; }));
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") menus.forEach((m) => { if (m.open) { m.open = false; m.firstElementChild.focus(); } });
  });

  // A title is shown only to a mouse: what has the focus or is touched has its title on a line below.
  const titleOf = (from) => {
    const titled = from.closest("[title], a:has(> title)");
    return titled ? titled.getAttribute("title") ?? titled.querySelector("title").textContent : "";
  };
  const lines = new Map();
  const tell = (e) => {
    const box = e.target.closest?.("main .scroll, main .panel, main .place");
    const text = box && titleOf(e.target);
    if (!box || (!text && !lines.has(box))) return;
    if (!lines.has(box)) {
      const line = document.createElement("p");
      line.className = "told";
      line.setAttribute("role", "status");
      lines.set(box, line);
      if (box.matches(".panel")) box.append(line); else box.after(line);
    }
    lines.get(box).textContent = text;
  };
  document.addEventListener("focusin", tell);
  document.addEventListener("click", tell);

  // The index is loaded when the field is used: a page opened from a folder may load scripts but fetch nothing.
  const form = document.querySelector("form.search");
  const list = document.getElementById("found");
  let entries = null, loading = null, at = -1;
  window.indexed = (content) => { entries = content.map(([kind, text, page]) => ({ kind, text, page, lower: text.toLowerCase() })); };
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = index;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
  const MOST = 12;
  // Tasks, models and studies come before runs, the name itself before names that begin with it,
  // and those before others.
  const rank = (entry, words) => {
    const name = words.join(" ");
    const isItself = entry.lower === name || entry.lower.endsWith(`(${name})`);
    return (entry.kind !== "run") * -4 - isItself * 2 - entry.lower.startsWith(words[0]);
  };
  const close = () => { list.hidden = true; form.q.setAttribute("aria-expanded", "false"); form.q.removeAttribute("aria-activedescendant"); at = -1; };
  const mark = (next) => {
    const options = [...list.querySelectorAll("a")];
    if (!options.length) return;
    at = (next + options.length) % options.length;
    options.forEach((o, i) => o.parentNode.setAttribute("aria-selected", String(i === at)));
    form.q.setAttribute("aria-activedescendant", `found-${at}`);
  };
  const show = async () => {
    await load();
    const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) { close(); return; }
    const fitting = entries.filter((entry) => words.every((word) => entry.lower.includes(word)));
    fitting.sort((a, b) => rank(a, words) - rank(b, words));
    list.replaceChildren(...fitting.slice(0, MOST).map((entry, i) => {
      const item = document.createElement("li"), link = document.createElement("a"), kind = document.createElement("small");
      item.setAttribute("role", "option");
      item.id = `found-${i}`;
      link.href = base + entry.page;
      kind.textContent = entry.kind;
      link.append(entry.text, " ", kind);
      item.append(link);
      return item;
    }));
    const rest = document.createElement("li");
    rest.className = "note";
    rest.textContent = fitting.length ? (fitting.length > MOST ? `${fitting.length - MOST} more` : "") : "Nothing has this name.";
    if (rest.textContent) list.append(rest);
    list.hidden = false;
    form.q.setAttribute("aria-expanded", "true");
    at = -1;
  };
  form.q.addEventListener("focus", load);
  form.q.addEventListener("input", show);
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    (list.querySelectorAll("a")[Math.max(0, at)])?.click();
  });
  form.q.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); mark(at + (e.key === "ArrowDown" ? 1 : -1)); }
    if (e.key === "Escape") close();
  });
  document.addEventListener("click", (e) => { if (!form.contains(e.target)) close(); });
})();
