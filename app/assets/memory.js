/* The memory chart's pointer: a line that follows it, a readout of what is there, marks of position and selection.
   The marks lie over the chart, so that nothing is drawn again when they move. */
"use strict";

window.hlotraceMemory = (function () {
    let data = null;
    let at = null;
    let chosen = null;
    const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

    function bytes(value) {
        let power = 0;
        while (value >= 1023.995 && power < UNITS.length - 1) {
            value /= 1024;
            power += 1;
        }
        return (power ? value.toFixed(2) : String(value)) + " " + UNITS[power];
    }

    function chart() {
        const host = document.getElementById("memory-chart");
        const gd = host && host.querySelector(".js-plotly-plot");
        return gd && gd._fullLayout && gd._fullLayout.xaxis && gd._fullLayout.yaxis2 ? gd : null;
    }

    /** The index of the last position that is not after `x`. */
    function indexAt(x) {
        let low = 0;
        let high = data.x.length - 1;
        if (high < 0) return -1;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (data.x[middle] <= x) low = middle;
            else high = middle - 1;
        }
        return low;
    }

    function pointed(gd, event) {
        const { xaxis, yaxis, yaxis2 } = gd._fullLayout;
        const seen = gd.getBoundingClientRect();
        const px = event.clientX - seen.left - xaxis._offset;
        const py = event.clientY - seen.top;
        if (px < 0 || px > xaxis._length) return null;
        if (py < yaxis._offset || py > yaxis2._offset + yaxis2._length) return null;
        const inMap = py >= yaxis2._offset;
        return { x: xaxis.p2l(px), map: inMap ? yaxis2.p2l(py - yaxis2._offset) / yaxis2.range[1] : null };
    }

    function rectangleAt(x, share) {
        const all = data.rectangles;
        const address = share * Math.max(0, ...data.rectangles.high);
        let found = -1;
        for (let index = 0; index < all.value.length; index++) {
            const inside = all.first[index] <= x && x < all.last[index] + 1 && all.low[index] <= address && address < all.high[index];
            if (inside) found = index; /* sorted largest first: the smallest that holds it wins */
        }
        return found;
    }

    function words(index, rectangle) {
        if (index < 0) return "";
        const all = data.rectangles;
        const parts = [`position ${data.x[index].toLocaleString("en-US")}`, data.names[index] || "no instruction", `${bytes(data.total[index])} alive`];
        if (rectangle >= 0) parts.push(`${all.value[rectangle]}: ${all.size[rectangle]} ${all.category[rectangle]}, live ${all.first[rectangle]}–${all.last[rectangle]}`);
        return parts.join("  ·  ");
    }

    function read(index, rectangle) {
        const place = document.getElementById("memory-readout");
        if (place) place.textContent = words(index, rectangle === undefined ? -1 : rectangle);
    }

    function resting() {
        if (!data) return;
        const position = at === null || at === undefined ? data.peak : Number(at);
        read(position === null ? -1 : indexAt(position));
    }

    /* ---- marks over the chart ---- */

    function layer(gd) {
        let made = gd.querySelector(".marks");
        if (!made) {
            made = document.createElement("div");
            made.className = "marks";
            gd.appendChild(made);
        }
        const { xaxis, yaxis, yaxis2 } = gd._fullLayout;
        made.style.left = xaxis._offset + "px";
        made.style.width = xaxis._length + "px";
        made.style.top = yaxis._offset + "px";
        made.style.height = yaxis2._offset + yaxis2._length - yaxis._offset + "px";
        return made;
    }

    function mark(kind, gd, from, to, parent) {
        const axis = gd._fullLayout.xaxis;
        const left = axis.l2p(from);
        const right = axis.l2p(to);
        if (right < 0 || left > axis._length) return;
        const made = document.createElement("div");
        made.className = "mark " + kind;
        made.style.left = Math.max(0, left) + "px";
        made.style.width = Math.max(kind === "cursor" ? 1 : 2, Math.min(axis._length, right) - Math.max(0, left)) + "px";
        parent.appendChild(made);
    }

    function box(gd, index, parent) {
        const { xaxis, yaxis, yaxis2 } = gd._fullLayout;
        const all = data.rectangles;
        const top = Math.max(0, ...data.rectangles.high);
        if (!top) return;
        const left = Math.max(0, xaxis.l2p(all.first[index]));
        const right = Math.min(xaxis._length, xaxis.l2p(all.last[index] + 1));
        if (right < 0 || left > xaxis._length) return;
        const made = document.createElement("div");
        made.className = "mark box";
        made.style.left = left + "px";
        made.style.width = Math.max(2, right - left) + "px";
        made.style.top = yaxis2._offset - yaxis._offset + yaxis2._length * (1 - all.high[index] / top) + "px";
        made.style.height = Math.max(2, (yaxis2._length * (all.high[index] - all.low[index])) / top) + "px";
        parent.appendChild(made);
    }

    function drawMarks() {
        const gd = chart();
        if (!gd || !data) return;
        const parent = layer(gd);
        parent.replaceChildren();
        if (chosen) {
            for (const [first, last] of chosen.spans.slice(0, 400)) mark("span", gd, first, last + 1, parent);
            for (const position of chosen.positions.slice(0, 1500)) mark("position", gd, position, position + 1, parent);
            const wanted = new Set(chosen.values);
            data.rectangles.value.forEach((value, index) => { if (wanted.has(value)) box(gd, index, parent); });
        }
        const position = at === null || at === undefined ? data.peak : Number(at);
        if (position !== null) mark(at === null || at === undefined ? "peak" : "at", gd, position, position + 1, parent);
    }

    function cursor(gd, x) {
        const parent = layer(gd);
        parent.querySelectorAll(".cursor").forEach((old) => old.remove());
        if (x !== null) mark("cursor", gd, x, x, parent);
    }

    /* ---- pointer ---- */

    let pressed = null;

    function onMove(event) {
        const gd = chart();
        const inside = gd && data && event.target.closest && event.target.closest("#memory-chart");
        if (!inside) {
            if (onMove.was && gd) {
                cursor(gd, null);
                resting();
            }
            onMove.was = false;
            return;
        }
        const found = pointed(gd, event);
        onMove.was = true;
        if (!found) return;
        const index = indexAt(found.x);
        cursor(gd, found.x);
        read(index, found.map === null ? -1 : rectangleAt(found.x, found.map));
    }

    function onUp(event) {
        const from = pressed;
        pressed = null;
        const gd = chart();
        if (!from || !gd || !data || Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y) > 4) return;
        const found = pointed(gd, event);
        if (!found) return;
        const index = indexAt(found.x);
        if (index < 0) return;
        const patch = { at: String(data.x[index]) };
        if (found.map !== null) {
            const rectangle = rectangleAt(found.x, found.map);
            if (rectangle >= 0) patch.select = "buffer:" + data.rectangles.value[rectangle];
        }
        window.hlotrace.go(patch);
    }

    document.addEventListener("pointermove", onMove);
    document.addEventListener("pointerdown", (event) => {
        pressed = event.target.closest && event.target.closest("#memory-chart") ? { x: event.clientX, y: event.clientY } : null;
    }, true);
    document.addEventListener("pointerup", onUp, true);

    const listening = new WeakSet();
    function listen() {
        const gd = chart();
        if (!gd) return false;
        if (!listening.has(gd)) {
            listening.add(gd);
            gd.on("plotly_afterplot", drawMarks);
        }
        return true;
    }

    function show(positions, position, selection) {
        if (positions) data = positions;
        at = position;
        chosen = selection;
        resting();
        let tries = 0;
        (function wait() {
            if (listen()) drawMarks();
            else if (tries++ < 100) window.setTimeout(wait, 30);
        })();
    }

    return { show };
})();
