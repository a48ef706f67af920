// Votes on a page that was opened from a file: kept in this browser, and saved as a file of events.
(() => {
  "use strict";

  const main = document.querySelector("main.offline");
  const pairs = [...main.querySelectorAll("[data-pair]")];
  const message = main.querySelector("[data-message]");
  const place = `tiltyard-votes-${main.dataset.rater}`;
  const idleMs = 60000;
  const keys = { Digit1: "left", Digit2: "both_good", Digit3: "right", Digit4: "both_bad" };
  const needs = { left: "better", right: "better", both_good: "tie", both_bad: "both_bad" };
  let events = [];
  let at = 0;
  let saved = true;
  let activeMs = {};
  let lastMoment = Date.now();

  try {
    events = JSON.parse(localStorage.getItem(place) || "[]");
    saved = events.length === 0;
  } catch (error) {
    // Some browsers give no storage to files: then the votes live as long as the page.
    events = [];
  }

  const last = (token) => events.filter((event) => event.token === token).pop();

  function randomKey() {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function remarks(pair, side) {
    const field = pair.querySelector(`[data-side="${side}"]`);
    const tags = [...field.querySelectorAll("input:checked")].map((input) => input.value);
    return { tags, comment: field.querySelector("textarea").value };
  }

  function restore(pair) {
    const event = last(pair.dataset.pair);
    if (!event) return;
    for (const side of ["left", "right"]) {
      const field = pair.querySelector(`[data-side="${side}"]`);
      for (const input of field.querySelectorAll("input")) input.checked = event[`${side}_tags`].includes(input.value);
      field.querySelector("textarea").value = event[`${side}_comment`];
    }
    for (const input of pair.querySelectorAll("[data-skip] input")) input.checked = input.value === event.reason;
  }

  function show(number) {
    at = Math.max(0, Math.min(pairs.length - 1, number));
    pairs.forEach((pair, index) => {
      pair.hidden = index !== at;
    });
    refresh();
    window.scrollTo(0, 0);
  }

  function refresh() {
    const event = last(pairs[at].dataset.pair);
    for (const button of pairs[at].querySelectorAll(".offline-bar [data-choice]")) {
      button.setAttribute("aria-pressed", String(Boolean(event) && event.choice === button.dataset.choice));
    }
    main.querySelector("[data-number]").textContent = at + 1;
    main.querySelector("[data-done]").textContent = pairs.filter((pair) => last(pair.dataset.pair)).length;
  }

  function vote(choice) {
    const pair = pairs[at];
    const token = pair.dataset.pair;
    const button = pair.querySelector(`[data-choice="${choice}"]`);
    if (!button) return;
    const left = remarks(pair, "left");
    const right = remarks(pair, "right");
    const reason = choice === "skip" ? pair.querySelector("[data-skip] input:checked")?.value : "";
    if (choice === "skip" && !reason) {
      message.textContent = main.dataset.reason;
      return;
    }
    const said = left.tags.length + right.tags.length > 0 || left.comment.trim() || right.comment.trim();
    if (main.dataset.needs.split(" ").includes(needs[choice]) && !said) {
      message.textContent = main.dataset.needsText;
      return;
    }
    events.push({
      token,
      key: randomKey(),
      choice,
      replaces: last(token)?.key || "",
      left_tags: left.tags,
      left_comment: left.comment,
      right_tags: right.tags,
      right_comment: right.comment,
      reason,
      active_ms: Math.round(activeMs[token] || 0),
    });
    saved = false;
    message.textContent = "";
    try {
      localStorage.setItem(place, JSON.stringify(events));
    } catch (error) {
      message.textContent = main.dataset.unsaved;
    }
    const next = pairs.findIndex((other, index) => index > at && !last(other.dataset.pair));
    if (next === -1) refresh();
    else show(next);
  }

  function save() {
    const head = {
      format: "tiltyard.offline_votes",
      schema_version: 1,
      campaign: main.dataset.campaign,
      rater: main.dataset.rater,
    };
    const text = [head, ...events].map((row) => `${JSON.stringify(row)}\n`).join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
    link.download = `votes-${main.dataset.rater}.jsonl`;
    link.click();
    saved = true;
  }

  function tick() {
    const now = Date.now();
    const token = pairs[at].dataset.pair;
    if (!document.hidden) activeMs[token] = (activeMs[token] || 0) + Math.min(now - lastMoment, idleMs);
    lastMoment = now;
  }

  for (const pair of pairs) restore(pair);
  main.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    tick();
    if (button.dataset.choice) vote(button.dataset.choice);
    else if (button.dataset.step) show(at + Number(button.dataset.step));
    else if ("save" in button.dataset) save();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, [contenteditable]");
    if (typing || event.repeat || event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.shiftKey || !keys[event.code]) return;
    event.preventDefault();
    tick();
    vote(keys[event.code]);
  });
  document.addEventListener("visibilitychange", tick);
  for (const kind of ["scroll", "pointermove"]) document.addEventListener(kind, tick, { passive: true });
  window.addEventListener("beforeunload", (event) => {
    if (!saved) event.preventDefault();
  });
  const open = pairs.findIndex((pair) => !last(pair.dataset.pair));
  show(open === -1 ? 0 : open);
})();
