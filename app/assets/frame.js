/* The frame's behaviour: the URL is the state, one selection lights up everywhere, keys, copying, light and dark. */
"use strict";

window.hlotrace = (function () {
    const PARAMETERS = ["bundle", "module", "select", "space", "at", "by", "stage", "area"];
    const DEPENDENT = { bundle: ["module", "select", "space", "at"], module: ["select", "space", "at"], space: ["at"] };
    let chosen = null;
    let chosenIds = new Set();

    /** The state as the address bar has it. */
    function current() {
        const query = new URLSearchParams(window.location.search);
        const state = { page: decodeURIComponent(window.location.pathname.replaceAll("/", "")) || "overview" };
        for (const name of PARAMETERS) state[name] = query.get(name);
        return state;
    }

    /** The address of a state. */
    function address(state) {
        const query = new URLSearchParams();
        for (const name of PARAMETERS) {
            const value = state[name];
            if (value !== null && value !== undefined && value !== "") query.set(name, value);
        }
        const path = state.page === "overview" ? "/" : "/" + encodeURIComponent(state.page);
        const search = query.toString();
        return { path: path, search: search ? "?" + search : "" };
    }

    /** The current state with a patch over it; what depended on a changed parameter falls away. */
    function patched(patch) {
        const state = current();
        for (const [name, value] of Object.entries(patch)) {
            if (state[name] === value) continue;
            state[name] = value;
            for (const other of DEPENDENT[name] || []) if (!(other in patch)) state[other] = null;
        }
        return state;
    }

    /** Go to the current state with a patch over it: a new entry in the history unless `replace`. */
    function go(patch, replace) {
        const to = address(patched(patch));
        if (to.path + to.search === window.location.pathname + window.location.search) return;
        settle(to, replace);
    }

    /** Put an address in place and tell dcc.Location all of it, so that it finds nothing to change itself. */
    function settle(to, replace) {
        window.history[replace ? "replaceState" : "pushState"](null, "", to.path + to.search);
        dash_clientside.set_props("url", { pathname: to.path, search: to.search, href: window.location.href });
    }

    function setChosen(value) {
        chosen = value;
        chosenIds = new Set(value ? value.ids : []);
    }

    /** The selection that a grid's row stands for; rows of equal names carry a tab and a number. */
    function selectionOf(rowId) {
        return rowId.split("\t")[0];
    }

    function isChosen(rowId) {
        return typeof rowId === "string" && chosenIds.has(selectionOf(rowId));
    }

    /* ---- light and dark ---- */

    const preference = window.matchMedia("(prefers-color-scheme: dark)");

    function remembered() {
        try {
            return window.localStorage.getItem("hlotrace-theme");
        } catch {
            return null;
        }
    }

    function applyTheme() {
        const theme = remembered() || (preference.matches ? "dark" : "light");
        document.documentElement.dataset.theme = theme;
        document.documentElement.dataset.agThemeMode = theme;
    }

    function switchTheme() {
        const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
        try {
            window.localStorage.setItem("hlotrace-theme", next);
        } catch {
            /* a browser that keeps nothing: the switch holds for this page */
        }
        document.documentElement.dataset.theme = next;
        document.documentElement.dataset.agThemeMode = next;
    }

    preference.addEventListener("change", applyTheme);
    applyTheme();

    /* ---- copying ---- */

    function say(text) {
        const place = document.getElementById("said");
        if (!place) return;
        place.textContent = text;
        place.classList.add("shown");
        window.clearTimeout(say.timer);
        say.timer = window.setTimeout(() => place.classList.remove("shown"), 1600);
    }

    async function copy(text) {
        try {
            await navigator.clipboard.writeText(text);
            say("Copied");
        } catch {
            say("The browser did not allow copying");
        }
    }

    /* ---- clicks ---- */

    function onClick(event) {
        const copying = event.target.closest("[data-copy]");
        if (copying) return copy(copying.dataset.copy);
        const going = event.target.closest("[data-go]");
        if (going && !(going.href && (event.ctrlKey || event.metaKey || event.shiftKey))) {
            event.preventDefault();
            closeOverlays();
            return go(JSON.parse(going.dataset.go));
        }
        if (event.target.closest("#theme-switch")) return switchTheme();
        if (event.target.closest("#help-button")) return toggleHelp();
        if (event.target.closest("#copy-link")) return copy(window.location.href);
        if (event.target.id === "help") return closeOverlays();
        const row = event.target.closest(".ag-center-cols-container .ag-row[row-id]");
        if (row && window.getSelection().isCollapsed) chooseRow(row.getAttribute("row-id"));
        return undefined;
    }

    function chooseRow(rowId, replace) {
        const selection = selectionOf(rowId);
        if (selection.startsWith("module:")) go({ module: selection.slice(7) }, replace);
        else if (selection.includes(":")) go({ select: selection }, replace);
    }

    /* ---- keys ---- */

    function toggleHelp() {
        document.getElementById("help").classList.toggle("open");
    }

    function closeOverlays() {
        document.getElementById("help").classList.remove("open");
        const search = document.getElementById("search");
        if (document.activeElement === search) search.blur();
    }

    function searchResults() {
        return [...document.querySelectorAll("#search-results [data-go]")];
    }

    function moveInResults(step) {
        const results = searchResults();
        if (!results.length) return;
        const at = results.findIndex((item) => item.classList.contains("current"));
        results.forEach((item) => item.classList.remove("current"));
        const next = results[(at + step + results.length) % results.length];
        next.classList.add("current");
        next.scrollIntoView({ block: "nearest" });
    }

    function onSearchKey(event) {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            moveInResults(event.key === "ArrowDown" ? 1 : -1);
        } else if (event.key === "Enter") {
            const results = searchResults();
            const pick = results.find((item) => item.classList.contains("current")) || results[0];
            if (pick) pick.click();
        } else if (event.key === "Escape") {
            closeOverlays();
        }
    }

    /** The grid that `j` and `k` move in: the one pointed at or clicked last, else the page's first. */
    function activeGrid() {
        const last = document.querySelector(".grid.active");
        return last || document.querySelector("#page .grid");
    }

    function moveRow(step) {
        const element = activeGrid();
        const api = element && window.hlotraceGrid.apiOf(element.dataset.grid);
        if (api) window.hlotraceGrid.move(api, step, (rowId) => chooseRow(rowId, true));
    }

    function onKey(event) {
        const typing = event.target.matches("input, textarea, select, [contenteditable]");
        if (event.target.id === "search") return onSearchKey(event);
        if (typing || event.ctrlKey || event.metaKey || event.altKey) return undefined;
        if (event.key === "/") {
            event.preventDefault();
            const search = document.getElementById("search");
            search.focus();
            search.select();
        } else if (event.key === "?") toggleHelp();
        else if (event.key === "j") moveRow(1);
        else if (event.key === "k") moveRow(-1);
        else if (event.key === "Escape") {
            if (document.getElementById("help").classList.contains("open")) closeOverlays();
            else go({ select: null });
        }
        return undefined;
    }

    function onPointerOver(event) {
        const grid = event.target.closest && event.target.closest(".grid");
        if (!grid || grid.classList.contains("active")) return;
        document.querySelectorAll(".grid.active").forEach((other) => other.classList.remove("active"));
        grid.classList.add("active");
    }

    /** Act, once a frame at the most, when parts of the page come and go or an attribute of one changes. */
    function afterChanges(attribute, act) {
        let waiting = false;
        new MutationObserver(() => {
            if (waiting) return;
            waiting = true;
            window.requestAnimationFrame(() => {
                waiting = false;
                act();
            });
        }).observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: [attribute] });
    }

    document.addEventListener("click", onClick);
    document.addEventListener("keydown", onKey);
    document.addEventListener("pointerover", onPointerOver);

    return { current, address, patched, go, settle, copy, say, setChosen, isChosen, afterChanges, chosen: () => chosen, PARAMETERS };
})();
