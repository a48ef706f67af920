// Comforts only: without this file the form is sent as any other.
(() => {
  "use strict";

  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const problem = form.querySelector("[data-upload-problem]");
  const progress = form.querySelector("[data-upload-progress]");
  const bar = progress.querySelector("progress");
  const button = form.querySelector("button");

  function complain(text) {
    problem.replaceChildren();
    form.querySelector(".field").classList.toggle("field-wrong", Boolean(text));
    if (!text) return;
    const paragraph = document.createElement("p");
    paragraph.textContent = text;
    problem.append(paragraph);
  }

  function tooLarge() {
    const large = (input.files[0]?.size ?? 0) > Number(form.dataset.maxBytes);
    complain(large ? form.dataset.tooLarge : "");
    return large;
  }

  function show(label, share) {
    progress.hidden = false;
    progress.querySelector("[data-upload-label]").textContent = label;
    progress.querySelector("[data-upload-text]").textContent = share === null ? "" : `${Math.floor(share)} %`;
    if (share === null) bar.removeAttribute("value");
    else bar.value = share;
  }

  function stop(text) {
    progress.hidden = true;
    button.disabled = false;
    complain(text);
  }

  function finish(request) {
    if (request.status < 400) {
      location.assign(request.responseURL);
      return;
    }
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    const found = page.querySelector("[data-upload-problem]");
    stop(found?.textContent.trim() || form.dataset.broken);
  }

  input.addEventListener("change", tooLarge);
  form.addEventListener("submit", (event) => {
    if (!input.files.length) return;
    event.preventDefault();
    if (tooLarge()) return;
    const body = new FormData(form);
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.upload.addEventListener("progress", (step) => {
      if (step.lengthComputable) show(form.dataset.uploading, (100 * step.loaded) / step.total);
    });
    request.upload.addEventListener("load", () => show(form.dataset.checking, null));
    request.addEventListener("load", () => finish(request));
    request.addEventListener("error", () => stop(form.dataset.broken));
    button.disabled = true;
    show(form.dataset.uploading, 0);
    request.send(body);
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) stop("");
  });
})();
