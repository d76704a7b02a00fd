// The page of tacit label: shows one question at a time, and posts each answer before the next is shown.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const by = (id) => document.getElementById(id);
let task = null, state = null, question = null, editor = null, isBusy = false;
let given = JSON.parse(sessionStorage.getItem("given") || "[]");  // answers of this tab, which it may take back

function make(name, attributes = {}, text = "") {
  const node = name.includes(":") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}

async function request(path, content) {
  const options = content === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
  };
  const response = await fetch(path, options);
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
}

function complain(text) {
  by("notice").textContent = text;
  by("notice").hidden = !text;
}

// the page around the question

function showState(found) {
  state = found;
  const fitting = state.is_fitting ? " The model is being fitted." : "";
  by("status").textContent = `${state.answered} of ${state.total} answered, ${state.closed} without an answer.${fitting}`;
  by("advice").textContent = state.advice;
  by("undo").disabled = !state.can_undo;
  if (state.error) complain(`The last fit failed: ${state.error}`);
  drawChart(state.qualities);
  const next = state.questions[0] || null;
  if (next && question && next.item === question.item) return;  // what is being edited stays
  question = next;
  for (const id of ["accept", "skip", "none"]) by(id).disabled = !question;
  if (!question) {
    by("question").textContent = "All questions are answered.";
    by("stage").replaceChildren();
    by("keys").textContent = "";
    editor = null;
    return;
  }
  by("question").textContent = question.label ? `${question.label}: ${question.name}` : question.name;
  editor = EDITORS[task.kind](by("stage"), question);
  by("keys").textContent = editor.help;
}

function drawChart(qualities) {
  const chart = by("chart"), nodes = [
    make("svg:line", { class: "axis", x1: 34, y1: 140, x2: 292, y2: 140 }), make("svg:line", { class: "axis", x1: 34, y1: 10, x2: 34, y2: 140 }),
    make("svg:text", { x: 163, y: 166, "text-anchor": "middle" }, "answers"),
  ];
  if (!qualities.length) nodes.push(make("svg:text", { x: 163, y: 80, "text-anchor": "middle" }, "not enough answers yet"));
  const most = Math.max(1, ...qualities.map((pair) => pair[0]));
  const places = qualities.map(([n, quality]) => [34 + (258 * n) / most, 140 - 130 * Math.min(Math.max(quality, 0), 1)]);
  if (places.length > 1) nodes.push(make("svg:polyline", { class: "line", points: places.map((at) => at.join(",")).join(" ") }));
  for (const [x, y] of places) nodes.push(make("svg:circle", { class: "dot", cx: x, cy: y, r: 3.5 }));
  for (const level of [0, 0.5, 1]) nodes.push(make("svg:text", { x: 28, y: 144 - 130 * level, "text-anchor": "end" }, String(level)));
  if (places.length) {
    const [x, y] = places[places.length - 1];
    nodes.push(make("svg:text", { x: Math.min(Math.max(x, 52), 270), y: y < 30 ? y + 18 : y - 9, "text-anchor": "middle" }, qualities[qualities.length - 1][1].toFixed(2)));
    nodes.push(make("svg:text", { x: 292, y: 155, "text-anchor": "end" }, String(most)));
  }
  chart.replaceChildren(...nodes);
}

async function send(path, content) {
  if (isBusy) return;
  isBusy = true;
  complain("");
  try {
    const found = await request(path, content);
    given = path === "undo" ? given.slice(0, -1) : [...given, content.item];
    sessionStorage.setItem("given", JSON.stringify(given));
    question = null;
    showState(found);
  } catch (error) {
    complain(`Not stored: ${error.message}`);
  } finally {
    isBusy = false;
  }
}

const ACTIONS = {
  accept: () => question && send("answer", { item: question.item, kind: "answer", answer: editor.answer() }),
  skip: () => question && send("answer", { item: question.item, kind: "skip" }),
  none: () => question && task.none && send("answer", { item: question.item, kind: "none" }),
  undo: () => state.can_undo && send("undo", given.length ? { item: given[given.length - 1] } : {}),
};
const KEYS = { Enter: "accept", a: "accept", s: "skip", n: "none", u: "undo" };

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.metaKey || !state) return;
  if (editor && editor.key(event)) event.preventDefault();
  else if (!event.ctrlKey && KEYS[event.key]) { event.preventDefault(); ACTIONS[KEYS[event.key]](); }
});
for (const [id, action] of Object.entries(ACTIONS)) by(id).addEventListener("click", () => { by(id).blur(); action(); });

async function begin() {
  try {
    task = await request("task");
    by("title").textContent = `tacit label, for ${task.name}`;
    document.querySelector("aside h2").textContent = task.quality[0].toUpperCase() + task.quality.slice(1);
    by("none").hidden = !task.none;
    by("note").textContent = task.note || "";
    showState(await request("state"));
  } catch (error) {
    complain(`The page could not be loaded: ${error.message}`);
  }
  setInterval(async () => {
    if (isBusy || !task) return;
    try { showState(await request(question ? `state?item=${question.item}` : "state")); } catch (error) { complain("tacit label is not running any more; answers until now are on disk."); }
  }, 2000);
}

begin();
