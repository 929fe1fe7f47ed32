// Package figure draws the figures of tracelab's report as SVG that stands
// inside an HTML page: no fonts, styles or addresses from elsewhere. Equal
// data give equal bytes.
package figure
