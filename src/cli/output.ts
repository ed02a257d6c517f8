/** Prints what a command found: one JSON document, or lines for people. */
export type Print = (document: unknown, lines: () => readonly string[]) => void;

const write = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** Output as `--json` asks for it. */
export const printer =
  (options: { readonly json?: boolean }): Print =>
  (document, lines) => {
    if (options.json) write(JSON.stringify(document, null, 2));
    else for (const line of lines()) write(line);
  };

/** Rows under headings, in columns as wide as what they hold. */
export function table(headings: readonly string[], rows: readonly (readonly unknown[])[]): string[] {
  const cells = [headings, ...rows].map((row) => row.map((cell) => cellText(cell)));
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '-';
  return typeof cell === 'string' ? cell : JSON.stringify(cell);
}
