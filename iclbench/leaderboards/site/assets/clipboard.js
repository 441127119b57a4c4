// Buttons that copy their own text, or the command before them.
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
  document.querySelectorAll("button.copy").forEach((by) => {
    const label = by.textContent;
    by.setAttribute("aria-live", "polite");
    by.addEventListener("click", async () => {
      const done = await write(by.dataset.text ?? by.previousElementSibling.textContent.trim());
      by.textContent = done ? "Copied" : "Copy by hand";
      setTimeout(() => { by.textContent = label; }, 1600);
    });
  });
})();
