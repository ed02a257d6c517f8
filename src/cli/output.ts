import { createInterface } from 'node:readline/promises';
import { CliError } from './cli_error.ts';

/** Prints the result of a command, as JSON or as lines of text. */
type Print = (result: unknown, lines: () => readonly string[]) => void;

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

/** Prints a list: as JSON always in the form of the API's lists, without the links to other pages. */
export const printList =
  (options: { readonly json?: boolean }) =>
  <Item>(items: readonly Item[], lines: (items: readonly Item[]) => readonly string[]): void =>
    printer(options)({ count: items.length, results: items }, () => lines(items));

/** The option of commands that ask. */
export const yesOption = ['--yes', 'do not ask before anything is deleted'] as const;

/**
 * Asks on the terminal before something is deleted. Without a terminal, as in a script, it does not ask.
 * @throws CliError unless the reply is yes
 */
export async function confirm(question: string, { yes = false }: { readonly yes?: boolean }): Promise<void> {
  if (yes || !process.stdin.isTTY || !process.stderr.isTTY) return;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const reply = (await terminal.question(`${question} [y/N] `)).trim().toLowerCase();
    if (reply !== 'y' && reply !== 'yes') throw new CliError('Nothing was changed.');
  } finally {
    terminal.close();
  }
}

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
