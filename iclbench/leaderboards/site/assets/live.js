// Reloads the page when the server has built a newer site.
"use strict";
(() => {
  let version = null, events = null;
  const follow = () => {
    events = new EventSource("/events");
    events.onmessage = (event) => {
      if (version !== null && version !== event.data) location.reload();
      version = event.data;
    };
  };
  // A browser has six connections to a server: pages that nobody sees must not keep them.
  const change = () => {
    events?.close();
    if (!document.hidden) follow();
  };
  document.addEventListener("visibilitychange", change);
  addEventListener("pagehide", () => events?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) change(); });
  change();
})();
