// Comforts of the rater's page: keys, tabs, drafts, and a vote that survives a lost network. Without this file the
// page is plain forms.
(() => {
  "use strict";

  const page = document.querySelector("[data-rating]");
  if (!page) return;
  const form = document.querySelector("[data-rating-form]");
  const message = page.querySelector("[data-rating-message]");
  const narrow = matchMedia("(max-width: 49.99rem)");
  const texts = page.dataset;
  const IDLE_MS = 60_000;
  const DRAFT_MS = 1_200;
  const KEYS = "tiltyard-rating-keys";

  // One request at a time, and none after a vote: of two clicks at once the first is meant.
  let busy = false;
  let voted = false;

  // A page that comes out of the browser's memory may show a pair that has a vote by now.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
  addEventListener("pagehide", () => {
    if (voted) page.hidden = true;
  });

  function say(text) {
    message.textContent = text;
    message.hidden = !text;
  }

  // Django changes the token when somebody signs in; the cookie has the one that is good now.
  function csrf() {
    const cookie = document.cookie.split("; ").find((one) => one.startsWith("csrftoken="));
    return cookie ? cookie.split("=")[1] : form.elements.csrfmiddlewaretoken.value;
  }

  async function post(url, body) {
    const response = await fetch(url, {
      method: "POST",
      body,
      headers: { "X-Requested-With": "rating", "X-CSRFToken": csrf() },
      credentials: "same-origin",
    });
    return { response, signedOut: response.redirected || response.status === 403 || response.status === 404 };
  }

  // Active time: the tab is in front and somebody moved within the last minute.
  let activeMs = 0;
  let lastMove = performance.now();
  let lastTick = lastMove;
  for (const kind of ["pointermove", "pointerdown", "keydown", "scroll", "wheel", "touchmove"]) {
    addEventListener(kind, () => (lastMove = performance.now()), { passive: true, capture: true });
  }
  function tick() {
    const now = performance.now();
    // A second passed, or the timer slept with the tab: what lies between counts only once.
    if (!document.hidden && now - lastMove < IDLE_MS) activeMs += Math.min(now - lastTick, 2_000);
    lastTick = now;
  }
  setInterval(tick, 1_000);

  const opened = new Set();
  const seesBoth = () => !narrow.matches || (opened.has("left") && opened.has("right"));

  async function vote(button) {
    if (!form || busy || voted) return;
    if (!seesBoth()) {
      say(texts.openBothText);
      return;
    }
    busy = true;
    tick();
    form.elements.active_ms.value = String(Math.round(activeMs));
    const body = new FormData(form);
    body.set("choice", button.value);
    say(texts.savingText);
    try {
      const { response, signedOut } = await post(form.action, body);
      if (signedOut) {
        say(texts.signedOutText);
      } else if (response.status === 422) {
        say((await response.json()).message);
        openRemarks(button.value);
      } else if (response.ok || response.status === 409) {
        voted = true;
        page.hidden = true;
        location.replace(texts.next);
        return;
      } else {
        say(texts.offlineText);
      }
    } catch {
      say(texts.offlineText);
    }
    busy = false;
  }

  function openRemarks(choice) {
    if (choice === "skip") return;
    for (const one of page.querySelectorAll(".rating-remarks")) one.open = true;
  }

  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter?.name === "choice") vote(event.submitter);
  });

  // What is typed is kept on the server too.
  let timer = 0;
  let draftDue = false;
  async function saveDraft() {
    if (!texts.draftUrl || !draftDue || voted || busy) return;
    draftDue = false;
    try {
      await post(texts.draftUrl, new FormData(form));
    } catch {
      // The text is still on this page, and the next letter tries again.
      draftDue = true;
    }
  }
  // A page that is left before its time still sends what was typed.
  addEventListener("pagehide", () => {
    if (draftDue && texts.draftUrl && !voted) navigator.sendBeacon(texts.draftUrl, new FormData(form));
  });
  if (form) {
    for (const field of form.elements) {
      field.addEventListener("input", () => {
        draftDue = true;
        clearTimeout(timer);
        timer = setTimeout(saveDraft, DRAFT_MS);
      });
    }
  }

  // Tabs of narrow screens.
  const tabs = page.querySelector("[data-rating-tabs]");
  function showTab(name) {
    page.dataset.tab = name;
    opened.add(name);
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.tab === name));
    if (seesBoth() && message.textContent === texts.openBothText) say("");
  }
  tabs.hidden = false;
  showTab("prompt");
  tabs.addEventListener("click", (event) => {
    const tab = event.target.closest("[data-tab]");
    if (tab) {
      showTab(tab.dataset.tab);
      scrollTo(0, 0);
    }
  });

  const pdfButton = page.querySelector("[data-rating-pdf]");
  function togglePdf() {
    if (!pdfButton) return;
    const closed = page.dataset.pdf !== "closed";
    page.dataset.pdf = closed ? "closed" : "open";
    pdfButton.setAttribute("aria-pressed", String(!closed));
  }
  if (pdfButton) {
    pdfButton.hidden = false;
    pdfButton.addEventListener("click", togglePdf);
  }
  // A link that changes only what is behind the hash does not move a viewer that is loaded already.
  const frame = page.querySelector("iframe[name=pdf-pane]");
  for (const link of page.querySelectorAll("[data-pdf-page]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const fresh = frame.cloneNode();
      fresh.src = link.href;
      document.querySelector("iframe[name=pdf-pane]").replaceWith(fresh);
    });
  }

  function openDialog(id) {
    const dialog = document.getElementById(id);
    if (!dialog.open) dialog.showModal();
  }
  for (const button of page.querySelectorAll("[data-rating-open]")) {
    button.hidden = false;
    button.addEventListener("click", () => openDialog(button.dataset.ratingOpen));
  }

  function comment() {
    const boxes = [...page.querySelectorAll(".rating-remarks")];
    const next = boxes[0].contains(document.activeElement) ? boxes[1] : boxes[0];
    next.open = true;
    if (narrow.matches) showTab(next.closest("[data-pane]").dataset.pane);
    next.querySelector("textarea").focus();
  }

  function scrollBoth(direction) {
    for (const one of page.querySelectorAll("[data-scroll]")) one.scrollBy(0, direction * one.clientHeight * 0.6);
  }

  const skipBox = page.querySelector("[data-rating-skip]");
  function skip() {
    if (!skipBox) return;
    skipBox.open = !skipBox.open;
    if (skipBox.open) skipBox.querySelector("input").focus();
  }

  const press = (value) => {
    const button = form?.querySelector(`button[value="${value}"]`);
    if (button) vote(button);
  };
  const actions = {
    1: () => press("left"),
    2: () => press("both_good"),
    3: () => press("right"),
    4: () => press("both_bad"),
    s: skip,
    u: () => document.querySelector("[data-rating-undo]")?.requestSubmit(),
    g: () => openDialog("guidelines-dialog"),
    p: togglePdf,
    c: comment,
    j: () => scrollBoth(1),
    k: () => scrollBoth(-1),
    "?": () => openDialog("keys-dialog"),
  };
  // Where a layout has other letters on these keys, the key's own place decides.
  const places = { Slash: "?" };
  for (const number of "1234") places[`Digit${number}`] = places[`Numpad${number}`] = number;
  for (const letter of "sugpcjk") places[`Key${letter.toUpperCase()}`] = letter;

  function keysAreOn() {
    try {
      return localStorage.getItem(KEYS) !== "off";
    } catch {
      return true;
    }
  }
  const keySwitch = document.querySelector("[data-rating-keys]");
  function showKeys() {
    keySwitch.checked = keysAreOn();
    page.dataset.keys = keySwitch.checked ? "on" : "off";
  }
  keySwitch.addEventListener("change", () => {
    try {
      if (keySwitch.checked) localStorage.removeItem(KEYS);
      else localStorage.setItem(KEYS, "off");
    } catch {
      // Storage may be forbidden; the keys then stay on.
    }
    showKeys();
  });
  showKeys();

  const isTyping = (element) =>
    element instanceof Element &&
    (element.isContentEditable || element.matches("textarea, select, input:not([type=checkbox]):not([type=radio])"));

  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.repeat || event.isComposing || event.keyCode === 229) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]") || !keysAreOn()) return;
    const typed = event.key.toLowerCase();
    const name = typed in actions ? typed : places[event.code];
    if (!name || (event.shiftKey && name !== "?") || (name === "?" && !event.shiftKey && typed !== "?")) return;
    // With the reasons open a key is meant for them.
    if (skipBox?.open && name !== "s") return;
    event.preventDefault();
    actions[name]();
  });
})();
