/* What the grids call: numbers in a column's one unit, bars, rows that are lit up, moving by keys. */
"use strict";

function swatches() {
    if (!swatches.known) swatches.known = JSON.parse(document.getElementById("frame").dataset.swatches);
    return swatches.known;
}

/** One formatter for each number of decimals: making one costs more than using it a thousand times. */
function formatOf(decimals) {
    const known = formatOf.known || (formatOf.known = {});
    known[decimals] ??= new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return known[decimals];
}

window.dashAgGridFunctions = Object.assign(window.dashAgGridFunctions || {}, {
    /** A number in its column's unit; nothing known is a dash, too small to show is `<0.01`. */
    hlotraceNumber(value, divisor, decimals) {
        if (value === null || value === undefined) return "–";
        const number = value / divisor;
        const least = Math.pow(10, -decimals);
        if (number !== 0 && Math.abs(number) < least / 2) return "<" + least.toFixed(decimals);
        return formatOf(decimals).format(number);
    },

    hlotraceText(value) {
        return value === null || value === undefined || value === "" ? "–" : String(value);
    },

    /** A bar behind the number: its share of the column's maximum. */
    hlotraceBar(value, largest) {
        const share = value > 0 && largest > 0 ? Math.min(100, (100 * value) / largest) : 0;
        return {
            backgroundImage: `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)`,
            backgroundSize: "100% 70%",
            backgroundPosition: "right center",
            backgroundRepeat: "no-repeat",
        };
    },

    /** The colour of a category in front of its name. */
    hlotraceSwatch(value) {
        const colour = swatches()[value];
        return colour ? { boxShadow: `inset 4px 0 0 ${colour}`, paddingLeft: "11px" } : { paddingLeft: "11px" };
    },

    /** A number as typed into a column's filter, in the unit that the column shows. */
    hlotraceParse(text, divisor) {
        return text === null || text === "" ? null : Number(text) * divisor;
    },

    hlotraceFormat(value, divisor) {
        return value === null || value === undefined ? null : String(value / divisor);
    },

    hlotraceRowId(data) {
        return data.id;
    },
});

window.dashAgGridComponentFunctions = Object.assign(window.dashAgGridComponentFunctions || {}, {
    /** A name that keeps its end: the cell runs from right to left, the name inside it from left to right. */
    HlotraceTail(props) {
        return window.React.createElement("bdi", { dir: "ltr" }, props.valueFormatted || "");
    },
});

window.hlotraceGrid = (function () {
    function apiOf(id) {
        try {
            return window.dash_ag_grid.getApi(id);
        } catch {
            return null;
        }
    }

    function all() {
        return [...document.querySelectorAll(".grid[data-grid]")].map((element) => apiOf(element.dataset.grid)).filter(Boolean);
    }

    /** Light up the rows that are on the screen; nothing is drawn again. */
    function lightRows() {
        document.querySelectorAll(".ag .ag-row[row-id]").forEach((row) => {
            row.classList.toggle("is-chosen", window.hlotrace.isChosen(row.getAttribute("row-id")));
        });
    }

    /** Light up what is chosen and bring the first such row into sight where the grid holds its rows. */
    function light(select) {
        lightRows();
        for (const api of all()) bringIntoSight(api, select);
    }

    /* Rows come and change as a grid is scrolled: those that do are lit up when they do. */
    window.hlotrace.afterChanges("row-id", lightRows);

    function bringIntoSight(api, select) {
        if (!select) return;
        let found = null;
        let first = null;
        api.forEachNode((node) => {
            if (node.id === select) found = node;
            else if (first === null && window.hlotrace.isChosen(node.id)) first = node;
        });
        const node = found || first;
        if (node && node.rowIndex !== null) api.ensureNodeVisible(node, null);
    }

    /** Choose the row `step` further than the chosen one, or the first in sight. */
    function move(api, step, choose) {
        const count = api.getDisplayedRowCount();
        if (!count) return;
        let at = -1;
        const select = window.hlotrace.current().select;
        const shown = api.getFirstDisplayedRowIndex();
        for (let index = 0; index < count && at < 0; index++) {
            const node = api.getDisplayedRowAtIndex(index);
            if (node && node.id === select) at = index;
        }
        const next = at < 0 ? Math.max(0, shown) : Math.min(count - 1, Math.max(0, at + step));
        const node = api.getDisplayedRowAtIndex(next);
        api.ensureIndexVisible(next, null);
        if (node && node.id) choose(node.id);
    }

    document.addEventListener("input", (event) => {
        const quick = event.target.closest("[data-quick]");
        const api = quick && apiOf(quick.dataset.quick);
        if (api) api.setGridOption("quickFilterText", event.target.value);
    });

    document.addEventListener("click", (event) => {
        const exporting = event.target.closest("[data-export]");
        const api = exporting && apiOf(exporting.dataset.export);
        if (api) api.exportDataAsCsv({ fileName: exporting.dataset.file });
    });

    return { apiOf, all, light, move };
})();
