"use strict";
for (const box of document.querySelectorAll(".table")) {
  const body = box.querySelector("tbody"), heads = [...box.querySelectorAll("th")];
  const value = (row, column, isNumber) => {
    const cell = row.cells[column];
    if (!isNumber) return cell.textContent.trim();
    return cell.dataset.key === "" ? -Infinity : Number(cell.dataset.key);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button"), isNumber = head.classList.contains("number");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const falls = now ? now === "ascending" : isNumber;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      const keyed = [...body.rows].map((row) => [value(row, column, isNumber), row]);
      keyed.sort(([a], [b]) => (isNumber ? (a < b ? -1 : a > b ? 1 : 0) : a.localeCompare(b, undefined, { numeric: true })));
      if (falls) keyed.reverse();
      body.append(...keyed.map(([, row]) => row));
    });
  });
  const filter = box.querySelector(".filter");
  if (filter) filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
