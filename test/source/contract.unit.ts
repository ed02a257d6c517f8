import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { sourceContract } from '../../src/source/contract.ts';

const readme = readFileSync(join(import.meta.dirname, '../../src/source/README.md'), 'utf8');
/** The rows of its tables, as cells. */
const rows = readme
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

const columns = Object.entries(sourceContract).flatMap(([role, contract]) =>
  contract.columns.map((column) => [role, column.name, column] as const),
);

describe('the contract of the source', () => {
  it.each(columns)('%s.%s is described in the README', (_, name, { type, nullable, optional, why }) => {
    const isNullable = optional === true ? 'may be missing' : nullable ? 'yes' : 'no';
    expect(rows).toContainEqual([`\`${name}\``, `\`${type}\``, isNullable, why]);
  });

  it('names each index', () => {
    for (const { accessPaths } of Object.values(sourceContract))
      for (const path of accessPaths) expect(readme).toContain(`\`(${path.columns.join(', ')})\``);
  });
});
