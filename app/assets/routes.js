/* What Dash's clientside callbacks call. */
"use strict";

window.dash_clientside = Object.assign(window.dash_clientside || {}, {
    hlotrace: (function () {
        const nothing = () => window.dash_clientside.no_update;
        const NAMES = ["select", "space", "at", "by", "stage", "area"];

        /** The URL into the stores; only what changed is set, so only what depends on it is drawn again. */
        function route(pathname, search, catalogue, oldView, ...old) {
            const state = window.hlotrace.current();
            const bundles = Object.keys(catalogue);
            if (state.bundle === null || (bundles.length === 1 && !(state.bundle in catalogue))) state.bundle = bundles[0];
            if (state.module === null && catalogue[state.bundle]) state.module = catalogue[state.bundle][0];
            const address = window.hlotrace.address(state);
            if (address.path + address.search !== window.location.pathname + window.location.search) {
                window.hlotrace.settle(address, true);
            }
            markNavigation(state);
            markSwitches(state);
            const view = { page: state.page, bundle: state.bundle, module: state.module };
            const same = oldView && ["page", "bundle", "module"].every((name) => oldView[name] === view[name]);
            return [same ? nothing() : view, ...NAMES.map((name, index) => (state[name] === (old[index] ?? null) ? nothing() : state[name]))];
        }

        function markNavigation(state) {
            document.querySelectorAll("nav .nav-link").forEach((link) => {
                const page = JSON.parse(link.dataset.go).page;
                const to = window.hlotrace.address({ ...state, page: page });
                link.classList.toggle("here", page === state.page);
                link.setAttribute("aria-current", page === state.page ? "page" : "false");
                link.setAttribute("href", to.path + to.search);
            });
            document.title = `hlotrace: ${state.page}${state.module ? ", " + state.module : ""}`;
        }

        function markSwitches(state) {
            document.querySelectorAll(".switch[data-name]").forEach((element) => {
                const value = state[element.dataset.name] ?? element.dataset.default;
                element.querySelectorAll(".choice").forEach((choice) => {
                    choice.classList.toggle("on", choice.dataset.value === value);
                    choice.setAttribute("aria-pressed", String(choice.dataset.value === value));
                });
            });
        }

        function options(names) {
            return names.map((name) => ({ label: name, value: name, title: name }));
        }

        function pickers(view, catalogue) {
            const bundles = Object.keys(catalogue);
            return [options(bundles), view.bundle, options(catalogue[view.bundle] || []), view.module];
        }

        function pick_bundle(value) {
            if (value && value !== window.hlotrace.current().bundle) window.hlotrace.go({ bundle: value });
        }

        function pick_module(value) {
            if (value && value !== window.hlotrace.current().module) window.hlotrace.go({ module: value });
        }

        function light(chosen) {
            window.hlotrace.setChosen(chosen);
            lightAll();
        }

        function lightAll() {
            const chosen = window.hlotrace.chosen();
            window.hlotraceGrid.light(chosen ? chosen.select : null);
            window.hlotraceGraph.light();
            window.hlotraceTreemap.light();
        }

        const NARROWING = ["opcode:", "category:", "source:", "scope:"];

        /** Ask for the list's rows anew, but only when what narrows it changed: an op chosen in it does not. */
        function refresh_ops(select, quick, narrowed) {
            const group = NARROWING.some((kind) => (select || "").startsWith(kind)) ? select : "";
            const api = window.hlotraceGrid.apiOf("ops-grid");
            if (api && typeof narrowed === "string" && narrowed !== group + "\n" + (quick || "")) api.purgeInfiniteCache();
            return nothing();
        }

        /** Bring a row of the list into sight; its count is known to the grid a moment after its rows arrive. */
        function scroll_ops(place) {
            if (typeof place !== "number") return nothing();
            let tries = 0;
            (function wait() {
                const api = window.hlotraceGrid.apiOf("ops-grid");
                if ((!api || place >= api.getDisplayedRowCount()) && tries++ < 60) return window.setTimeout(wait, 50);
                if (api && (place < api.getFirstDisplayedRowIndex() || place > api.getLastDisplayedRowIndex())) {
                    api.ensureIndexVisible(place, "middle");
                }
                return undefined;
            })();
            return nothing();
        }

        function mark_memory(positions, at, chosen) {
            window.hlotraceMemory.show(positions, at, chosen);
            return nothing();
        }

        /* Parts of a page come after the URL was read: mark their switches when they do. */
        window.hlotrace.afterChanges("data-dash-is-loading", () => {
            markSwitches(window.hlotrace.current());
            document.body.classList.toggle("busy", document.querySelector("[data-dash-is-loading]") !== null);
        });

        return { route, pickers, pick_bundle, pick_module, light, refresh_ops, scroll_ops, mark_memory };
    })(),
});
