// For pages that are files (`knowngood site`): finds issues of the matrix by words. The words come as a script, because
// a file may fetch nothing; without scripts the whole matrix is there.
"use strict";

const finder = document.querySelector("[data-find]");

if (finder) {
  const input = finder.querySelector("input");
  const status = finder.querySelector("[role=status]");
  const lines = [...document.querySelectorAll("[data-issue]")];
  const groups = [...document.querySelectorAll("[data-grid] tbody")];

  const look = () => {
    const texts = window.knownGoodTexts;
    if (!texts) return;
    const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const line of lines) line.hidden = !terms.every((term) => texts[line.dataset.issue].includes(term));
    for (const group of groups) group.hidden = !group.querySelector("tr.row:not([hidden])");
    const count = lines.filter((line) => !line.hidden).length;
    const words = status.dataset.words.replace("{n}", count).replace("{all}", lines.length);
    status.textContent = terms.length ? words : "";
  };

  const begin = () => {
    const script = document.createElement("script");
    script.src = finder.dataset.find;
    script.addEventListener("load", look);
    document.head.append(script);
  };

  finder.hidden = false;
  input.addEventListener("focus", begin, { once: true });
  input.addEventListener("input", look);
  if (input.value) begin(); // what was typed before, on the way back
}
