/* The treemap of fusions: a click chooses a tile, and the chosen one is outlined. */
"use strict";

window.hlotraceTreemap = (function () {
    function chart() {
        const host = document.getElementById("fusions-treemap");
        const gd = host && host.querySelector(".js-plotly-plot");
        return gd && gd.data && gd.data.length ? gd : null;
    }

    /** Outline what is chosen by a class on its tile: the figure is not drawn again. */
    function light() {
        const gd = chart();
        if (!gd) return;
        gd.querySelectorAll(".slice").forEach((slice) => {
            const item = slice.__data__ && slice.__data__.data && slice.__data__.data.data;
            slice.classList.toggle("is-chosen", Boolean(item) && window.hlotrace.isChosen(item.id));
        });
    }

    const listening = new WeakSet();
    new MutationObserver(() => {
        const gd = chart();
        if (!gd || listening.has(gd) || !gd.on) return;
        listening.add(gd);
        gd.on("plotly_treemapclick", (event) => {
            const id = event.points[0].id || "";
            if (id.startsWith("op:")) window.hlotrace.go({ select: id });
            else if (id.startsWith("group:")) window.hlotrace.go({ select: "category:" + id.slice(6) });
            return false;
        });
        gd.on("plotly_afterplot", light);
        light();
    }).observe(document.documentElement, { childList: true, subtree: true });

    return { light };
})();
