// Reloads the page when the server has built a newer site.
"use strict";
(() => {
  let version = null;
  const events = new EventSource("/events");
  events.onmessage = (event) => {
    if (version !== null && version !== event.data) location.reload();
    version = event.data;
  };
  addEventListener("pagehide", () => events.close());
})();
