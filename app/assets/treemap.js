/* Treemaps: a hover says what a tile is, a click chooses it, the chosen one is outlined. */
"use strict";

window.hlotraceTreemap = (function () {
    const LEAST_TEXT = 8;
    const SMALL_TEXT = 9;
    const LEAST_LETTERS = 4;
    const GAP = 14;

    function charts() {
        return [...document.querySelectorAll(".js-plotly-plot")].filter((gd) => gd.data && gd.data.length && gd.data[0].type === "treemap");
    }

    /** Outline what is chosen by a class on its tile: the figure is not drawn again. */
    function light() {
        charts().forEach(lightIn);
    }

    function lightIn(gd) {
        gd.querySelectorAll(".slice").forEach((slice) => {
            const item = slice.__data__ && slice.__data__.data && slice.__data__.data.data;
            slice.classList.toggle("is-chosen", Boolean(item) && window.hlotrace.isChosen(item.id));
        });
    }

    function sizeOf(label) {
        const scale = /scale\(([\d.]+)/.exec(label.getAttribute("transform") || "");
        return parseFloat(label.style.fontSize) * (scale ? Number(scale[1]) : 1);
    }

    /** Plotly shrinks a label until it fits its tile: what nobody could read gives way to the end of the name. */
    function enlarge(gd) {
        gd.querySelectorAll(".slice").forEach((slice) => {
            const label = slice.querySelector("text.slicetext");
            if (!label) return;
            label.style.visibility = "";
            if (sizeOf(label) < LEAST_TEXT) writeEnd(label, slice.querySelector("path.surface").getBBox());
        });
    }

    function writeEnd(label, box) {
        const name = label.textContent;
        const longest = Math.floor((box.width - 6) / (0.6 * SMALL_TEXT));
        if (box.height < SMALL_TEXT + 4 || longest < LEAST_LETTERS) {
            label.style.visibility = "hidden";
            return;
        }
        label.textContent = name.length > longest ? "…" + name.slice(1 - longest) : name;
        label.style.fontSize = SMALL_TEXT + "px";
        label.setAttribute("text-anchor", "start");
        label.setAttribute("transform", `translate(${box.x + 3},${box.y + SMALL_TEXT + 2})`);
    }

    /* ---- the hover: a box of its own, since Plotly's is one line cut at the chart's edges ---- */

    function hover() {
        let made = document.getElementById("tile-hover");
        if (!made) {
            made = document.createElement("div");
            made.id = "tile-hover";
            document.body.appendChild(made);
        }
        return made;
    }

    function showHover(lines, pointer) {
        const box = hover();
        box.replaceChildren(...lines.filter(Boolean).map((line) => {
            const part = document.createElement("div");
            part.textContent = line;
            return part;
        }));
        box.classList.add("shown");
        const { width, height } = box.getBoundingClientRect();
        const right = pointer.clientX + GAP;
        const under = pointer.clientY + GAP;
        box.style.left = Math.max(4, right + width < window.innerWidth ? right : pointer.clientX - GAP - width) + "px";
        box.style.top = Math.max(4, under + height < window.innerHeight ? under : pointer.clientY - GAP - height) + "px";
    }

    function hideHover() {
        hover().classList.remove("shown");
    }

    function listen(gd) {
        gd.on("plotly_treemapclick", (event) => {
            const id = event.points[0].id || "";
            if (id.startsWith("op:")) window.hlotrace.go({ select: id });
            else if (id.startsWith("group:")) window.hlotrace.go({ select: "category:" + id.slice(6) });
            return false;
        });
        gd.on("plotly_hover", (event) => showHover(event.points[0].customdata || [], event.event));
        gd.on("plotly_unhover", hideHover);
        gd.addEventListener("pointerleave", hideHover);
        gd.on("plotly_afterplot", () => {
            lightIn(gd);
            enlarge(gd);
        });
        lightIn(gd);
        enlarge(gd);
    }

    const listening = new WeakSet();
    new MutationObserver(() => {
        for (const gd of charts()) {
            if (listening.has(gd) || !gd.on) continue;
            listening.add(gd);
            listen(gd);
        }
        if (!charts().length) hideHover();
    }).observe(document.documentElement, { childList: true, subtree: true });

    return { light };
})();
