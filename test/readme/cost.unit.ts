import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

/** The cells of the rows of a table in a page, without spaces. */
const rowsOf = (page: string): readonly (readonly string[])[] =>
  readFileSync(page, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

it('the guide to cost has the figures of the benchmark', () => {
  const measured = rowsOf('test/bench/README.md');
  const [header = [], , ...figures] = rowsOf('src/guides/cost.md');
  for (const [index, format] of header.entries()) {
    if (index === 0) continue;
    const name = format.replace('JSON lines', 'JSONLines').replace(', ', '+');
    const row = measured.find(([program = '']) => program.split(' ')[0] === name) ?? [];
    const [, , , worker, postgresql, size] = row;
    expect([name, ...figures.slice(0, 3).map((cells) => cells[index])]).toEqual([
      name,
      size,
      worker,
      postgresql,
    ]);
  }
});
