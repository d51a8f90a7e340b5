// Strong shades for weak attention: of many tokens each gets little.
const shade = p => [255, 209, 155].map(c => Math.round(255 - c * Math.sqrt(p)));

function read(figure) {
  const given = JSON.parse(figure.querySelector("script").textContent);
  const bytes = Uint8Array.from(atob(given.data), c => c.charCodeAt(0));
  const view = new DataView(bytes.buffer), n = given.tokens.length;
  const at = (layer, head, from, to) =>
    view.getUint16(2 * (((layer * given.heads + head) * n + from) * n + to), true) / 65535;
  return {...given, n, at};
}

function small(maps, layer, head, size) {
  const {n, at} = maps, canvas = element("canvas", {width: n, height: n});
  canvas.style.width = canvas.style.height = `${size}px`;
  canvas.style.imageRendering = n < size ? "pixelated" : "auto";
  const image = new ImageData(n, n);
  for (let i = 0; i < n * n; i++) {
    image.data.set([...shade(at(layer, head, Math.floor(i / n), i % n)), 255], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

class Large {
  constructor(maps) {
    this.maps = maps;
    this.cell = Math.max(10, Math.min(30, Math.floor(600 / maps.n)));
    this.font = `${Math.min(13, Math.max(9, this.cell))}px system-ui, sans-serif`;
    this.canvas = element("canvas", {tabIndex: 0});
    this.pen = this.canvas.getContext("2d");
    this.pen.font = this.font;
    this.room = 12 + Math.max(...maps.tokens.map(t => this.pen.measureText(t).width));
    const side = this.room + maps.n * this.cell + 2, scale = window.devicePixelRatio || 1;
    Object.assign(this.canvas, {width: side * scale, height: side * scale});
    this.canvas.style.width = this.canvas.style.height = `${side}px`;
    this.pen.scale(scale, scale);
    this.side = side;
  }

  draw(layer, head, pointed) {
    const {maps, pen, cell, room} = this, {n, tokens, at} = maps;
    pen.clearRect(0, 0, this.side, this.side);
    pen.font = this.font;
    pen.textBaseline = "middle";
    for (let i = 0; i < n; i++) {
      const middle = room + (i + 0.5) * cell;
      pen.textAlign = "right";
      pen.fillStyle = pointed && pointed[0] === i ? "#d55e00" : "#222";
      pen.fillText(tokens[i], room - 6, middle);
      pen.save();
      pen.translate(middle, room - 6);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "left";
      pen.fillStyle = pointed && pointed[1] === i ? "#d55e00" : "#222";
      pen.fillText(tokens[i], 0, 0);
      pen.restore();
      for (let j = 0; j < n; j++) {
        pen.fillStyle = `rgb(${shade(at(layer, head, i, j)).join(" ")})`;
        pen.fillRect(room + j * cell, room + i * cell, cell - 1, cell - 1);
      }
    }
    pen.strokeStyle = "#999";
    pen.strokeRect(room - 1, room - 1, n * cell + 1, n * cell + 1);
    if (pointed) {
      pen.strokeStyle = "#d55e00";
      pen.lineWidth = 2;
      const [y, x] = pointed.map(p => room + p * cell - 1);
      pen.strokeRect(x, y, cell + 1, cell + 1);
      pen.lineWidth = 1;
    }
  }

  pointedAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const place = p => Math.floor((p - this.room) / this.cell);
    const at = [place(event.clientY - box.top), place(event.clientX - box.left)];
    return at.every(p => p >= 0 && p < this.maps.n) ? at : null;
  }
}

function show(figure) {
  const maps = read(figure), large = new Large(maps), text = element("output", {});
  const layerChoice = element("select", {}, ...maps.layers.map((l, i) => new Option(l, i)));
  const heads = Array.from({length: maps.heads}, (_, i) => i);
  const headChoice = element("select", {}, ...heads.map(i => new Option(i + 1, i)));
  const size = Math.max(18, Math.min(56, Math.floor(480 / maps.heads) - 4));
  const grid = element("div", {className: "overview"});
  grid.style.gridTemplateColumns = `auto repeat(${maps.heads}, ${size + 4}px)`;
  grid.append("", element("span"), ...heads.map(i => element("span", {textContent: i + 1})));
  let layer = 0, head = 0, pointed = null;
  const buttons = maps.layers.map((name, l) => {
    grid.append(element("span", {textContent: name}));
    return heads.map(h => {
      const title = `layer ${name}, head ${h + 1}`;
      const button = element("button", {title, tabIndex: -1}, small(maps, l, h, size));
      button.addEventListener("click", () => { choose(l, h); large.canvas.focus(); });
      grid.append(button);
      return button;
    });
  });

  function choose(l, h) {
    buttons[layer][head].classList.remove("on");
    layer = (l + maps.layers.length) % maps.layers.length;
    head = (h + maps.heads) % maps.heads;
    buttons[layer][head].classList.add("on");
    layerChoice.value = layer;
    headChoice.value = head;
    update();
  }

  function update() {
    large.draw(layer, head, pointed);
    const where = `layer ${maps.layers[layer]}, head ${head + 1}`;
    large.canvas.setAttribute("aria-label", `attention in ${where}`);
    const of = ([from, to]) => {
      const share = (100 * maps.at(layer, head, from, to)).toFixed(1);
      return `${maps.tokens[from]} pays ${share} % of its attention to ${maps.tokens[to]}`;
    };
    text.textContent = pointed ? of(pointed) : "point at a square to see its value";
  }

  layerChoice.addEventListener("change", () => choose(Number(layerChoice.value), head));
  headChoice.addEventListener("change", () => choose(layer, Number(headChoice.value)));
  large.canvas.addEventListener("mousemove", event => {
    pointed = large.pointedAt(event);
    update();
  });
  large.canvas.addEventListener("mouseleave", () => { pointed = null; update(); });
  large.canvas.addEventListener("keydown", event => {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
    if (!(event.key in step)) return;
    event.preventDefault();
    choose(layer + step[event.key][0], head + step[event.key][1]);
  });
  figure.append(
    element("div", {className: "choices"},
      element("label", {}, "layer ", layerChoice), element("label", {}, "head ", headChoice), text),
    element("div", {className: "maps"}, grid, element("div", {className: "large"}, large.canvas)));
  choose(0, 0);
}

document.querySelectorAll("figure.attention").forEach(show);
