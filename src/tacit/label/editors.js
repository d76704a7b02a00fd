// Editors: what is shown of a question, and the answer that it holds. page.js makes one per question.
"use strict";

function boxEditor(stage, asked) {
  const { width, height } = asked;
  const svg = make("svg:svg", { id: "photo", viewBox: `0 0 ${width} ${height}`, tabindex: "0", "aria-label": asked.name });
  const unit = Math.max(width, height) / 100;
  svg.append(make("svg:image", { href: `image/${asked.item}`, width, height }));
  const edge = make("svg:rect", { class: "edge", "stroke-width": unit });
  const box = make("svg:rect", { class: "box", "stroke-width": unit / 2 });
  const handles = [0, 1, 2, 3].map((corner) => make("svg:circle", { class: "handle", r: 1.6 * unit, "data-corner": corner }));
  svg.append(edge, box, ...handles);
  stage.replaceChildren(svg);
  let value = asked.guess ? asked.guess.slice() : [width / 4, height / 4, (3 * width) / 4, (3 * height) / 4];
  let start = null;
  const draw = () => {
    const place = { x: value[0], y: value[1], width: value[2] - value[0], height: value[3] - value[1] };
    for (const node of [edge, box]) for (const [key, number] of Object.entries(place)) node.setAttribute(key, Math.max(0, number));
    handles.forEach((handle, corner) => {
      handle.setAttribute("cx", value[corner % 2 ? 2 : 0]);
      handle.setAttribute("cy", value[corner < 2 ? 1 : 3]);
    });
  };
  const point = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [Math.min(Math.max(at.x, 0), width), Math.min(Math.max(at.y, 0), height)];
  };
  svg.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    svg.focus();
    svg.setPointerCapture(event.pointerId);
    const corner = event.target.dataset.corner;  // dragging a corner keeps the opposite one
    start = corner === undefined ? point(event) : [value[corner % 2 ? 0 : 2], value[corner < 2 ? 3 : 1]];
  });
  svg.addEventListener("pointermove", (event) => {
    if (!start) return;
    const at = point(event);
    const next = [Math.min(start[0], at[0]), Math.min(start[1], at[1]), Math.max(start[0], at[0]), Math.max(start[1], at[1])];
    if (next[2] - next[0] < 2 || next[3] - next[1] < 2) return;  // a click is not a box
    value = next;
    [box, ...handles].forEach((node) => node.classList.add("drawn"));
    draw();
  });
  svg.addEventListener("pointerup", () => { start = null; });
  draw();
  return {
    answer: () => value.map((number) => Math.round(10 * number) / 10),
    key: (event) => {
      const step = (event.ctrlKey ? 1 : 4) * unit / 2, moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      const move = moves[event.key];
      if (!move) return false;
      const [dx, dy] = [move[0] * step, move[1] * step];
      const next = event.shiftKey ? [value[0], value[1], value[2] + dx, value[3] + dy]
        : [value[0] + dx, value[1] + dy, value[2] + dx, value[3] + dy];
      if (next[0] < 0 || next[1] < 0 || next[2] > width || next[3] > height || next[2] - next[0] < 2 || next[3] - next[1] < 2) return true;
      value = next;
      [box, ...handles].forEach((node) => node.classList.add("drawn"));
      draw();
      return true;
    },
    help: "Drag a new box or a corner. Arrow keys move the box, with Shift its lower right corner.",
  };
}

function tagEditor(stage, asked) {
  const isSingle = asked.at !== null;  // the tag of one word, shown in its sentence
  const guess = isSingle ? asked.words.map((_, i) => (i === asked.at ? asked.guess : "")) : asked.guess;
  const value = asked.words.map((_, i) => (guess && guess[i] !== null ? guess[i] : task.tags[0]));
  const first = value.slice();
  let at = isSingle ? asked.at : 0;
  const row = make("div", { class: "words" }), choices = make("div", { class: "choices" });
  const words = asked.words.map((word, i) => {
    const node = make("button", { type: "button", class: "word" });
    node.append(make("b", {}, word), make("span", {}, value[i]));
    if (isSingle) node.disabled = i !== at;
    else node.addEventListener("click", () => { at = i; draw(); });
    row.append(node);
    return node;
  });
  const buttons = task.tags.map((tag, i) => {
    const node = make("button", { type: "button" }, tag);
    if (i < 9) node.append(make("kbd", {}, String(i + 1)));
    node.addEventListener("click", () => choose(tag));
    choices.append(node);
    return node;
  });
  const draw = () => {
    words.forEach((node, i) => {
      node.lastChild.textContent = value[i];
      node.classList.toggle("changed", value[i] !== first[i]);
      node.setAttribute("aria-current", String(i === at));
    });
    buttons.forEach((node, i) => node.setAttribute("aria-pressed", String(task.tags[i] === value[at])));
  };
  const choose = (tag) => {
    value[at] = tag;
    if (isSingle) ACTIONS.accept();
    else at = Math.min(at + 1, value.length - 1);
    draw();
  };
  stage.replaceChildren(row, choices);
  draw();
  return {
    answer: () => (isSingle ? value[at] : value.slice()),
    key: (event) => {
      const moves = isSingle ? {} : { ArrowLeft: -1, ArrowRight: 1 }, turns = { ArrowUp: -1, ArrowDown: 1 };
      if (event.key in moves) at = Math.min(Math.max(at + moves[event.key], 0), value.length - 1);
      else if (event.key in turns) value[at] = task.tags[(task.tags.indexOf(value[at]) + turns[event.key] + task.tags.length) % task.tags.length];
      else if (/^[1-9]$/.test(event.key) && Number(event.key) <= task.tags.length) { choose(task.tags[Number(event.key) - 1]); return true; }
      else return false;
      draw();
      return true;
    },
    help: isSingle ? "Click the tag of the marked word, or press its number. Up and down choose a tag without answering."
      : "Click a word and a tag. Left and right choose the word, up and down or 1 to 9 its tag.",
  };
}

function sentenceEditor(stage, asked) {
  const chosen = new Set(asked.guess || []);
  let at = 0;
  const row = make("div", { class: "words sentences" });
  const nodes = asked.sentences.map((sentence, i) => {
    const node = make("button", { type: "button", class: "word" });
    node.append(make("b", {}, sentence));
    node.addEventListener("click", () => { at = i; toggle(i); });
    row.append(node);
    return node;
  });
  const left = make("p", { id: "left" });
  const draw = () => {
    nodes.forEach((node, i) => {
      node.setAttribute("aria-pressed", String(chosen.has(i)));
      node.setAttribute("aria-current", String(i === at));
    });
    left.textContent = `${chosen.size} chosen; the model chooses ${asked.count}.`;
  };
  const toggle = (i) => { if (!chosen.delete(i)) chosen.add(i); draw(); };
  stage.replaceChildren(row, left);
  draw();
  return {
    answer: () => [...chosen].sort((a, b) => a - b),
    key: (event) => {
      const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };
      if (event.key in moves) { at = Math.min(Math.max(at + moves[event.key], 0), nodes.length - 1); draw(); nodes[at].scrollIntoView({ block: "nearest" }); }
      else if (event.key === " ") toggle(at);
      else return false;
      return true;
    },
    help: "Click the sentences that decide the label. Arrow keys move, the space bar chooses.",
  };
}

function maskEditor(stage, asked) {
  const canvas = make("canvas", { id: "canvas", tabindex: "0", "aria-label": asked.name });
  const isSingle = asked.region !== null;  // whether one region belongs to the object
  const chosen = new Set(isSingle ? [] : asked.guess || []), first = new Set(chosen);
  let map = null, photo = null, at = -1, isObject = true, isPainting = false, value = asked.guess ? 1 : 0;
  const choices = make("div", { class: "choices" });
  const buttons = !isSingle ? [] : ["object", "background"].map((name, i) => {
    const node = make("button", { type: "button", "aria-pressed": String(value === 1 - i) }, name);
    node.append(make("kbd", {}, String(i + 1)));
    node.addEventListener("click", () => { value = 1 - i; ACTIONS.accept(); });
    choices.append(node);
    return node;
  });
  stage.replaceChildren(canvas, choices);
  const load = (path) => new Promise((done, fail) => {
    const image = new Image();
    image.onload = () => done(image);
    image.onerror = () => fail(new Error("the photo could not be read"));
    image.src = path;
  });
  Promise.all([load(`image/${asked.item}`), load(`regions/${asked.item}`)]).then(([image, regions]) => {
    const { naturalWidth: width, naturalHeight: height } = regions;
    const pen = Object.assign(canvas, { width, height }).getContext("2d", { willReadFrequently: true });
    pen.imageSmoothingEnabled = false;
    pen.drawImage(regions, 0, 0);
    const colours = pen.getImageData(0, 0, width, height).data;
    map = new Uint32Array(width * height);
    for (let i = 0; i < map.length; i++) map[i] = colours[4 * i] + 256 * colours[4 * i + 1];
    pen.imageSmoothingEnabled = true;
    pen.drawImage(image, 0, 0, width, height);
    photo = pen.getImageData(0, 0, width, height);
    at = isSingle ? asked.region : map[Math.floor(height / 2) * width + Math.floor(width / 2)];
    draw();
  }).catch((error) => complain(error.message));
  const draw = () => {
    if (!photo) return;
    const { width, height } = canvas, shown = new ImageData(new Uint8ClampedArray(photo.data), width, height), out = shown.data;
    for (let y = 0, i = 0; y < height; y++) for (let x = 0; x < width; x++, i++) {
      const own = map[i], isIn = chosen.has(own);
      const isEdge = (x + 1 < width && map[i + 1] !== own) || (y + 1 < height && map[i + width] !== own);
      const isBorder = isEdge && ((x + 1 < width && chosen.has(map[i + 1]) !== isIn) || (y + 1 < height && chosen.has(map[i + width]) !== isIn));
      const tint = isBorder ? [213, 94, 0, 1] : own === at && isEdge ? [0, 114, 178, 1] : isSingle && own === at ? [0, 114, 178, 0.4] : isIn ? [255, 140, 20, 0.45] : isEdge ? [255, 255, 255, 0.18] : null;
      if (tint) for (let c = 0; c < 3; c++) out[4 * i + c] = (1 - tint[3]) * out[4 * i + c] + tint[3] * tint[c];
    }
    canvas.getContext("2d").putImageData(shown, 0, 0);
  };
  const paint = (own, is) => { if (is) chosen.add(own); else chosen.delete(own); };
  const place = (event) => {
    const frame = canvas.getBoundingClientRect();  // the photo is in its middle, as large as it fits
    const scale = Math.min(frame.width / canvas.width, frame.height / canvas.height);
    const x = Math.floor((event.clientX - frame.left - frame.width / 2) / scale + canvas.width / 2);
    const y = Math.floor((event.clientY - frame.top - frame.height / 2) / scale + canvas.height / 2);
    return x >= 0 && y >= 0 && x < canvas.width && y < canvas.height ? map[y * canvas.width + x] : -1;
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!photo || isSingle) return;
    event.preventDefault();
    canvas.focus();
    canvas.setPointerCapture(event.pointerId);
    at = place(event);
    isObject = !chosen.has(at);  // a stroke that begins in the object takes regions away
    isPainting = at >= 0;
    if (isPainting) paint(at, isObject);
    draw();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!isPainting) return;
    const own = place(event);
    if (own < 0 || own === at) return;
    at = own;
    paint(own, isObject);
    draw();
  });
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, () => { isPainting = false; });
  const walk = (dx, dy) => {
    const { width, height } = canvas, inside = [];
    for (let i = 0; i < map.length; i++) if (map[i] === at) inside.push(i);
    let i = inside[Math.floor(inside.length / 2)], x = i % width, y = Math.floor(i / width);
    while (x >= 0 && y >= 0 && x < width && y < height && map[y * width + x] === at) { x += dx; y += dy; }
    if (x >= 0 && y >= 0 && x < width && y < height) at = map[y * width + x];
  };
  return {
    answer: () => (isSingle ? value : [...chosen].sort((a, b) => a - b)),
    key: (event) => {
      if (isSingle) {
        const button = buttons[Number(event.key) - 1];
        if (button) button.click();
        return Boolean(button);
      }
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (!photo) return false;
      if (moves[event.key]) walk(...moves[event.key]);
      else if (event.key === " ") paint(at, !chosen.has(at));
      else if (event.key === "g") { chosen.clear(); for (const own of first) chosen.add(own); }
      else return false;
      draw();
      return true;
    },
    help: isSingle ? "Does the marked region belong to the object? Press 1 or 2, or accept the guess."
      : "Paint over the object; a stroke that begins in it takes regions away. Arrow keys move, the space bar changes a region, G goes back to the guess.",
  };
}

function siteEditor(stage, asked) {
  const letters = asked.letters, width = asked.width, last = letters.length - width;
  const [guessed, turned] = asked.guess || [Math.floor(last / 2), 0];
  let start = guessed, strand = turned;
  const row = make("div", { class: "letters" }), read = make("p", { id: "site" });
  const nodes = [...letters].map((letter, i) => {
    const node = make("span", {}, letter);
    node.addEventListener("pointerdown", (event) => { event.preventDefault(); move(i - Math.floor(width / 2)); });
    row.append(node);
    return node;
  });
  const turn = make("button", { type: "button" }, "Other strand");
  turn.append(make("kbd", {}, "F"));
  turn.addEventListener("click", () => { strand = 1 - strand; draw(); });
  const draw = () => {
    nodes.forEach((node, i) => node.classList.toggle("chosen", i >= start && i < start + width));
    const site = letters.slice(start, start + width), other = { A: "T", C: "G", G: "C", T: "A", U: "A" };
    const shown = strand ? [...site].reverse().map((letter) => other[letter] || "N").join("") : site;
    read.textContent = `Site ${shown}, letters ${start + 1} to ${start + width}, ${strand ? "on the other strand" : "as written"}`;
  };
  const move = (to) => { start = Math.min(Math.max(to, 0), last); draw(); };
  stage.replaceChildren(row, read, ...(asked.strands > 1 ? [turn] : []));
  draw();
  return {
    answer: () => [start, strand],
    key: (event) => {
      const step = event.shiftKey ? 10 : 1, moves = { ArrowLeft: -step, ArrowRight: step };
      if (event.key in moves) move(start + moves[event.key]);
      else if (event.key === "f" && asked.strands > 1) { strand = 1 - strand; draw(); }
      else return false;
      return true;
    },
    help: "Click the middle of the site. Arrow keys move it by one letter, with Shift by ten; F takes the other strand.",
  };
}

function clusterEditor(stage, asked) {
  const value = (asked.guess || asked.mentions.map((_, i) => i)).slice();
  let at = 0;
  const text = make("div", { class: "text" }), choices = make("div", { class: "choices" });
  const nodes = asked.mentions.map((_, i) => {
    const node = make("span", { class: "mention", role: "button" });
    node.addEventListener("click", (event) => { event.stopPropagation(); at = i; draw(); });
    return node;
  });
  const tokens = asked.sentences.flat(), ends = new Set();
  asked.sentences.reduce((n, own) => { ends.add(n + own.length); return n + own.length; }, 0);
  const open = [{ node: make("p"), end: Infinity }];
  text.append(open[0].node);
  tokens.forEach((token, t) => {
    while (open[open.length - 1].end <= t) open.pop();
    if (t) open[open.length - 1].node.append(" ");
    if (ends.has(t) && open.length === 1) { open[0].node = make("p"); text.append(open[0].node); }
    const begin = asked.mentions.map((span, i) => [i, span]).filter(([, span]) => span[0] === t).sort((a, b) => b[1][1] - a[1][1]);
    for (const [i, [, end]] of begin) {
      const around = open[open.length - 1];
      around.node.append(nodes[i]);
      open.push({ node: nodes[i], end: Math.min(end, around.end) });  // mentions that cross are cut
    }
    open[open.length - 1].node.append(token);
  });
  const words = (i) => tokens.slice(...asked.mentions[i]).join(" ");
  const listed = () => {
    const found = [];
    for (let i = at - 1; i >= 0 && found.length < 9; i--) if (!found.some((j) => value[j] === value[i])) found.push(i);
    return found;
  };
  const join = (i) => {
    value[at] = i < 0 ? Math.max(...value) + 1 : value[i];
    at = Math.min(at + 1, value.length - 1);
    draw();
  };
  const draw = () => {
    const counts = {};
    for (const own of value) counts[own] = (counts[own] || 0) + 1;
    nodes.forEach((node, i) => {
      node.setAttribute("aria-current", String(i === at));
      const hue = Math.round(value[i] * 137.508) % 360;
      node.style.backgroundColor = counts[value[i]] > 1 ? `hsl(${hue} 70% 50% / 0.25)` : "transparent";
      node.style.borderBottomColor = counts[value[i]] > 1 ? `hsl(${hue} 70% 45%)` : "";
    });
    const alone = make("button", { type: "button", "aria-pressed": String(value.indexOf(value[at]) === at) }, "nothing before it");
    alone.append(make("kbd", {}, "0"));
    alone.addEventListener("click", () => join(-1));
    const buttons = listed().map((i, n) => {
      const node = make("button", { type: "button", "aria-pressed": String(value[i] === value[at]) }, words(i).slice(0, 40));
      node.append(make("kbd", {}, String(n + 1)));
      node.addEventListener("click", () => join(i));
      return node;
    });
    choices.replaceChildren(make("b", {}, `“${words(at)}” means the same as`), ...buttons, alone);
    if (nodes[at]) nodes[at].scrollIntoView({ block: "nearest" });
  };
  stage.replaceChildren(text, choices);
  draw();
  return {
    answer: () => value.slice(),
    key: (event) => {
      const moves = { ArrowLeft: -1, ArrowRight: 1 };
      if (event.key in moves) { at = Math.min(Math.max(at + moves[event.key], 0), value.length - 1); draw(); return true; }
      if (event.key === "0") { join(-1); return true; }
      const wanted = /^[1-9]$/.test(event.key) ? listed()[Number(event.key) - 1] : undefined;
      if (wanted === undefined) return false;
      join(wanted);
      return true;
    },
    help: "Click a mention, or choose it with left and right; 1 to 9 join it with an earlier one, 0 makes it new.",
  };
}

const EDITORS = {
  boxes: boxEditor, tags: tagEditor, sentences: sentenceEditor, masks: maskEditor, sites: siteEditor, clusters: clusterEditor,
};
