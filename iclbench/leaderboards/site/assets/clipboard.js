// Buttons that copy what stands beside them, or in the element that they name.
"use strict";
(() => {
  const write = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here */ }
    const area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("readonly", "");
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const button = (label, text) => {
    const by = document.createElement("button");
    by.type = "button";
    by.className = "copy";
    by.textContent = label;
    by.addEventListener("click", async () => {
      const done = await write(text());
      by.textContent = done ? "Copied" : "Select and copy by hand";
      by.setAttribute("aria-live", "polite");
      setTimeout(() => { by.textContent = label; }, 1600);
    });
    return by;
  };
  // Every command gets a button of its own.
  document.querySelectorAll("pre.command").forEach((block) => {
    const box = document.createElement("div");
    box.className = "copyable";
    block.replaceWith(box);
    box.append(block, button("Copy", () => block.textContent.trim()));
  });
  document.querySelectorAll(".copies").forEach((row) => {
    row.querySelectorAll("[data-copy]").forEach((source) => {
      row.append(button(source.dataset.copy, () => source.textContent));
    });
  });
})();
