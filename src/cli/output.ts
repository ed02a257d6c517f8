/** Prints the result of a command, as JSON or as lines of text. */
export type Print = (result: unknown, lines: () => readonly string[]) => void;

const write = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/**
 * Resolves when stdout is flushed or closed. A slow reader gets all output before the process exits; a reader that has
 * closed the pipe, such as `head`, is not waited for.
 */
export const stdoutFlushed = (): Promise<void> =>
  new Promise((resolve) => {
    const closed = () => resolve();
    process.stdout.once('error', closed);
    process.stdout.write('', (error) => {
      // After a failed write the stream emits the error, which needs its listener.
      if (!error) process.stdout.off('error', closed);
      resolve();
    });
  });

/** Prints JSON with `--json`, otherwise lines. */
export const printer =
  (options: { readonly json?: boolean }): Print =>
  (result, lines) => {
    if (options.json) write(JSON.stringify(result, null, 2));
    else for (const line of lines()) write(line);
  };

/** Formats rows under headings, in aligned columns. */
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

/** A count and its noun, such as "1 poller" or "2 pollers". */
export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
