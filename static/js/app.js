// Comforts only: every page works without this file.
(() => {
  "use strict";

  const root = document.documentElement;
  const closest = (event, selector) =>
    event.target instanceof Element ? event.target.closest(selector) : null;

  // Theme: system, light, dark, and round again.
  const themes = ["system", "light", "dark"];
  const currentTheme = () => root.dataset.theme || "system";

  function showTheme() {
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      const theme = currentTheme();
      button.hidden = false;
      button.title = button.dataset[`label${theme[0].toUpperCase()}${theme.slice(1)}`];
      button.setAttribute("aria-label", button.title);
      for (const icon of button.querySelectorAll("[data-icon]")) {
        icon.toggleAttribute("hidden", icon.dataset.icon !== theme);
      }
    }
  }

  function nextTheme() {
    const theme = themes[(themes.indexOf(currentTheme()) + 1) % themes.length];
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    try {
      if (theme === "system") localStorage.removeItem("tiltyard-theme");
      else localStorage.setItem("tiltyard-theme", theme);
    } catch {
      // Storage may be forbidden; the choice then lasts as long as the page.
    }
    showTheme();
  }

  // Copy: <button data-copy="#id" data-done="Copied" hidden>
  async function copy(button) {
    const source = document.querySelector(button.dataset.copy);
    if (!source) return;
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText((source.value ?? source.textContent).trim());
      button.textContent = button.dataset.done || label;
    } catch {
      // No clipboard without HTTPS: select it, so that one key press copies.
      const range = document.createRange();
      range.selectNodeContents(source);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
    }
    setTimeout(() => (button.textContent = label), 1600);
  }

  // Confirm: <button data-confirm="What it destroys" data-confirm-title="Delete?">. The form then posts
  // confirmed=1; without this file the server asks on a page of its own.
  function confirmFirst(event, button) {
    const dialog = document.getElementById("confirm-dialog");
    const form = button.form;
    if (!dialog || !form || typeof dialog.showModal !== "function") return;
    event.preventDefault();
    dialog.querySelector("[data-confirm-slot=title]").textContent =
      button.dataset.confirmTitle || button.textContent.trim();
    dialog.querySelector("[data-confirm-slot=text]").textContent = button.dataset.confirm;
    const go = dialog.querySelector("[data-confirm-slot=go]");
    go.textContent = button.textContent.trim();
    dialog.returnValue = "";
    dialog.onclose = () => {
      if (dialog.returnValue !== "go") return;
      const answer = document.createElement("input");
      Object.assign(answer, { type: "hidden", name: "confirmed", value: "1" });
      form.append(answer);
      form.requestSubmit(button);
    };
    dialog.showModal();
  }

  // Drop zones: the file input stays what is submitted.
  function showFiles(input) {
    const list = input.closest("[data-drop-zone]")?.querySelector("[data-drop-files]");
    if (list) list.textContent = [...input.files].map((file) => file.name).join(", ");
  }

  function drop(event, zone) {
    const input = zone.querySelector("input[type=file]");
    if (!input || !event.dataTransfer?.files.length) return;
    const transfer = new DataTransfer();
    const files = [...event.dataTransfer.files];
    for (const file of input.multiple ? files : files.slice(0, 1)) transfer.items.add(file);
    input.files = transfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function mark(event, over) {
    const zone = closest(event, "[data-drop-zone]");
    if (!zone || !event.dataTransfer?.types.includes("Files")) return null;
    event.preventDefault();
    zone.classList.toggle("drop-zone-over", over);
    return zone;
  }

  function closeMenus(except) {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (menu !== except) menu.open = false;
    }
  }

  function say(text) {
    const toast = document.getElementById("toast");
    if (!toast || !text) return;
    toast.textContent = text;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => (toast.textContent = ""), 6000);
  }

  function prepare(scope) {
    for (const button of scope.querySelectorAll("[data-copy]")) button.hidden = false;
  }

  document.addEventListener("click", (event) => {
    closeMenus(closest(event, "details.menu"));
    const themeSwitch = closest(event, "[data-theme-switch]");
    const copyButton = closest(event, "[data-copy]");
    const confirmButton = closest(event, "button[data-confirm]");
    if (themeSwitch) nextTheme();
    else if (copyButton) copy(copyButton);
    else if (confirmButton) confirmFirst(event, confirmButton);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = document.querySelector("details.menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-drop-zone] input[type=file]")) showFiles(event.target);
    const form = closest(event, "form[data-auto-submit]");
    if (form) form.requestSubmit();
  });

  document.addEventListener("dragover", (event) => mark(event, true));
  document.addEventListener("dragleave", (event) => mark(event, false));
  document.addEventListener("drop", (event) => {
    const zone = mark(event, false);
    if (zone) drop(event, zone);
  });

  document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
  document.addEventListener("htmx:sendError", () => say(document.body.dataset.offline));
  document.addEventListener("htmx:timeout", () => say(document.body.dataset.offline));
  document.addEventListener("htmx:responseError", () => say(document.body.dataset.failed));

  showTheme();
  prepare(document);
  document.querySelector("[data-focus]")?.focus();
})();
