/** Prints what a command found: one JSON document, or lines for people. */
export type Print = (document: unknown, lines: () => readonly string[]) => void;

const write = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/**
 * Resolves when what was printed has been taken, or cannot be: a reader that is slow gets all of it before the process
 * ends, and one that went away, as `head` does, is not waited for.
 */
export const printed = (): Promise<void> =>
  new Promise((resolve) => {
    process.stdout.once('error', () => resolve());
    process.stdout.write('', () => resolve());
  });

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
