/* Numbers as text, rounded as the terminal and the report round them. */
"use strict";

window.hlotraceDigits = (function () {
    const formats = {};

    /** One formatter for each number of decimals: making one costs more than using it a thousand times. */
    function formatOf(decimals) {
        formats[decimals] ??= new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
        return formats[decimals];
    }

    /** As Python rounds: toFixed is exact but takes halves away from zero; here they go to the even digit. */
    function rounded(value, decimals) {
        const text = value.toFixed(decimals);
        const isHalf = Math.abs(value * Math.pow(2, decimals + 1)) % 2 === 1;
        const isOdd = Number(text.at(-1)) % 2 === 1;
        return isHalf && isOdd ? (Number(text) - Math.sign(value) * Math.pow(10, -decimals)).toFixed(decimals) : text;
    }

    /** `1,234.50`: as many decimals as asked for, thousands apart. */
    function grouped(value, decimals) {
        return formatOf(decimals).format(Number(rounded(value, decimals)));
    }

    return { rounded, grouped };
})();
