/** Width of every chart, that of a column of text on GitHub. */
export const chartWidth = 840;
/** Number of distinct colours of series. */
export const seriesColors = 4;

/** Text between tags, or an attribute's value. */
export const escapeXml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${String(character.charCodeAt(0))};`);

/** An SVG document that follows the light or dark theme of the reader. */
export const svgDocument = (height: number, title: string, body: readonly string[]): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(chartWidth)} ${String(height)}" role="img">
<title>${escapeXml(title)}</title>
<style>
  svg { --ground: #ffffff; --ink: #1f2328; --grid: #d1d9e0; --c0: #0969da; --c1: #bc4c00; --c2: #1a7f37; --c3: #8250df; }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #0d1117; --ink: #e6edf3; --grid: #3d444d; --c0: #4493f8; --c1: #f0883e; --c2: #3fb950; --c3: #ab7df8; }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); }
  .title { font-size: 16px; font-weight: 600; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
  .grid { stroke: var(--grid); }
  .mark { stroke: var(--ink); stroke-width: 1.5; fill: none; }
  .dashed { stroke-dasharray: 5 4; }
</style>
<rect width="100%" height="100%" fill="var(--ground)"/>
${text(16, 26, title, 'title')}
${body.join('\n')}
</svg>
`;

/** A text at a point of its baseline. */
export const text = (x: number, y: number, content: string, classes = ''): string =>
  `<text x="${point(x)}" y="${point(y)}" class="${classes}">${escapeXml(content)}</text>`;

export const line = (x1: number, y1: number, x2: number, y2: number, classes: string): string =>
  `<line x1="${point(x1)}" y1="${point(y1)}" x2="${point(x2)}" y2="${point(y2)}" class="${classes}"/>`;

/** The colour of a series. */
export const colorOf = (series: number): string => `var(--c${String(series % seriesColors)})`;

/** A coordinate with one decimal. */
export const point = (value: number): string => String(Math.round(value * 10) / 10);

/** Height of a line of a legend. */
export const legendLine = 18;

/** The names of series beside squares of their colours, one below the other from a baseline. */
export const legend = (names: readonly string[], x: number, y: number): string[] =>
  names.flatMap((name, series) => {
    const baseline = y + series * legendLine;
    const square = `<rect x="${point(x)}" y="${point(baseline - 10)}" width="11" height="11" fill="${colorOf(series)}"/>`;
    return [square, text(x + 18, baseline, name)];
  });

/** Round numbers from 0 to a maximum, about six of them. */
export function ticksUpTo(maximum: number): number[] {
  const magnitude = 10 ** Math.floor(Math.log10(maximum / 5));
  const step = [1, 2, 5, 10].map((factor) => factor * magnitude).find((one) => maximum / one <= 6) ?? maximum;
  return Array.from({ length: Math.ceil(maximum / step) + 1 }, (_, index) => index * step);
}
