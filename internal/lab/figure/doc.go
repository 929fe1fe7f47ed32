// Package figure draws the figures of tracelab's report as SVG that stands
// inside an HTML page, or in a file of its own: no styles or addresses from
// elsewhere. Equal data give equal bytes.
package figure
