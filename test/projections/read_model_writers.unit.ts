import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { projections } from '../../src/projections/registry.ts';

const root = join(import.meta.dirname, '../..');
const tables = projections.flatMap(({ owns }) => owns).map((table) => table.replace('.', '\\.'));
const writesProjection = new RegExp(
  `(insert\\s+into|update|delete\\s+from|truncate)\\s+(${tables.join('|')})\\b`,
  'i',
);

/** The files of these folders that write a read model, by their text. */
const writersIn = (pattern: string): readonly string[] =>
  globSync(pattern, { cwd: root }).filter((file) =>
    writesProjection.test(readFileSync(join(root, file), 'utf8')),
  );

describe('read models', () => {
  it('are written by src/projections', () => {
    expect(writersIn('src/projections/**/*.ts')).not.toEqual([]);
  });

  it('are written by nothing else, which appends events instead', () => {
    const writers = writersIn('{src,activities,workflows}/**/*.ts');
    expect(writers.filter((file) => !file.startsWith('src/projections/'))).toEqual([]);
  });
});
