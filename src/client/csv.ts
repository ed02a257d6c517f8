/** A text that spreadsheets would run as a formula, with `'` before it: visitors of a site choose values of events. */
export const withoutFormula = (text: string): string => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);

/** A row of CSV (RFC 4180) with its end. */
export const csvRow = (fields: readonly string[]): string =>
  `${fields.map((text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(',')}\r\n`;
