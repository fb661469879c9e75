/* Draws the laid-out graph that stands in `data-graph` as SVG: text is only ever set as text. Drag pans, the wheel zooms. */
"use strict";

(function () {
    const SVG = "http://www.w3.org/2000/svg";
    const MARGIN = 12;

    function element(name, attributes, parent) {
        const made = document.createElementNS(SVG, name);
        for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
        if (parent) parent.appendChild(made);
        return made;
    }

    function pathOf(points) {
        const [first, ...rest] = points;
        let text = `M${first[0]},${first[1]}`;
        for (let index = 0; index < rest.length; index += 3) {
            text += "C" + rest.slice(index, index + 3).map((point) => point.join(",")).join(" ");
        }
        return text;
    }

    function marker(defs, name) {
        const made = element("marker", { id: name, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse", class: name }, defs);
        element("path", { d: "M0,0.8L8,4L0,7.2z" }, made);
    }

    function drawEdge(edge, parent) {
        const kind = edge.in_memory ? "memory" : "inside";
        const group = element("g", { class: "edge " + kind }, parent);
        element("path", { d: pathOf(edge.path), "marker-end": `url(#arrow-${kind})` }, group);
        const label = element("text", { x: edge.label_at[0] + 4, y: edge.label_at[1] + 3 }, group);
        label.textContent = edge.label;
        const title = element("title", {}, group);
        title.textContent = `${edge.label} ${edge.in_memory ? "through memory" : "kept inside the fusion: never touches memory"}`;
    }

    function drawNode(node, parent) {
        const group = element("g", { class: "node " + node.kind, transform: `translate(${node.x - node.width / 2},${node.y - node.height / 2})` }, parent);
        element("rect", { width: node.width, height: node.height, rx: node.kind === "member" ? 2 : node.height / 2 }, group);
        if (node.kind === "member" && node.colour) element("rect", { width: 4, height: node.height, style: `fill:${node.colour};stroke:none` }, group);
        node.lines.forEach((line, index) => {
            const text = element("text", { x: node.width / 2, y: 5 + 14 * index + 10, class: index ? "second" : "first" }, group);
            text.textContent = line;
        });
        const title = element("title", {}, group);
        title.textContent = node.title || node.lines.join("\n");
        if (node.select) {
            group.dataset.go = JSON.stringify({ select: node.select });
            group.dataset.select = node.select;
            group.setAttribute("tabindex", "0");
        }
    }

    /** Pan and zoom by the viewBox: the text stays sharp. */
    function moveable(svg, width, height) {
        const box = { x: -MARGIN, y: -MARGIN, w: width + 2 * MARGIN, h: height + 2 * MARGIN };
        const whole = { ...box };
        const apply = () => svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.w} ${box.h}`);
        const fit = () => {
            Object.assign(box, whole);
            const seen = svg.getBoundingClientRect();
            /* A large graph opens at a readable size, at its top, instead of as a speck. */
            const scale = Math.min(seen.width / whole.w, seen.height / whole.h);
            const wanted = Math.min(1.15, Math.max(scale, 0.62));
            if (seen.width && scale !== wanted) {
                box.w = seen.width / wanted;
                box.h = seen.height / wanted;
                box.x = whole.x + (whole.w - box.w) / 2;
                box.y = box.h > whole.h ? whole.y + (whole.h - box.h) / 2 : whole.y;
            }
            apply();
        };
        const zoom = (factor, clientX, clientY) => {
            const seen = svg.getBoundingClientRect();
            const px = clientX === undefined ? 0.5 : (clientX - seen.left) / seen.width;
            const py = clientY === undefined ? 0.5 : (clientY - seen.top) / seen.height;
            const w = Math.min(whole.w * 4, Math.max(60, box.w * factor));
            const real = w / box.w;
            box.x += px * box.w * (1 - real);
            box.y += py * box.h * (1 - real);
            box.w *= real;
            box.h *= real;
            apply();
        };
        const everything = () => {
            const seen = svg.getBoundingClientRect();
            const scale = Math.min(seen.width / whole.w, seen.height / whole.h);
            box.w = seen.width / scale;
            box.h = seen.height / scale;
            box.x = whole.x + (whole.w - box.w) / 2;
            box.y = whole.y + (whole.h - box.h) / 2;
            apply();
        };
        svg.addEventListener("wheel", (event) => {
            event.preventDefault();
            zoom(Math.pow(1.0015, event.deltaY), event.clientX, event.clientY);
        }, { passive: false });
        let from = null;
        let moved = false;
        svg.addEventListener("pointerdown", (event) => {
            from = { x: event.clientX, y: event.clientY, bx: box.x, by: box.y };
            moved = false;
        });
        svg.addEventListener("pointermove", (event) => {
            if (!from) return;
            const seen = svg.getBoundingClientRect();
            const dx = event.clientX - from.x;
            const dy = event.clientY - from.y;
            if (!moved && Math.abs(dx) + Math.abs(dy) < 4) return;
            if (!moved) svg.setPointerCapture(event.pointerId);
            moved = true;
            box.x = from.bx - (dx * box.w) / seen.width;
            box.y = from.by - (dy * box.h) / seen.height;
            apply();
        });
        svg.addEventListener("pointerup", () => { from = null; });
        svg.addEventListener("pointercancel", () => { from = null; });
        svg.addEventListener("click", (event) => {
            if (moved) event.stopPropagation();
            moved = false;
        }, true);
        fit();
        return { zoom, fit, everything };
    }

    function button(text, title, act, parent) {
        const made = document.createElement("button");
        made.textContent = text;
        made.title = title;
        made.className = "tool";
        made.addEventListener("click", act);
        parent.appendChild(made);
    }

    function draw(host) {
        const data = JSON.parse(host.dataset.graph);
        host.replaceChildren();
        host.dataset.drawn = host.dataset.graph.length + ":" + data.nodes.length;
        const svg = element("svg", { class: "graph-svg", preserveAspectRatio: "xMidYMid meet" }, host);
        const defs = element("defs", {}, svg);
        marker(defs, "arrow-inside");
        marker(defs, "arrow-memory");
        const edges = element("g", {}, svg);
        data.edges.forEach((edge) => drawEdge(edge, edges));
        const nodes = element("g", {}, svg);
        data.nodes.forEach((node) => drawNode(node, nodes));
        const move = moveable(svg, data.width, data.height);
        const tools = document.createElement("div");
        tools.className = "graph-tools";
        host.appendChild(tools);
        button("+", "Zoom in", () => move.zoom(0.8), tools);
        button("−", "Zoom out", () => move.zoom(1.25), tools);
        button("all", "Show the whole graph", move.everything, tools);
        light();
    }

    function light() {
        document.querySelectorAll(".graph .node[data-select]").forEach((node) => {
            node.classList.toggle("is-chosen", window.hlotrace.isChosen(node.dataset.select));
        });
    }

    const drawn = new WeakMap();
    function drawNew() {
        document.querySelectorAll(".graph[data-graph]").forEach((host) => {
            if (drawn.get(host) === host.dataset.graph) return;
            drawn.set(host, host.dataset.graph);
            draw(host);
        });
    }

    window.hlotrace.afterChanges("data-graph", drawNew);

    window.hlotraceGraph = { light };
})();
