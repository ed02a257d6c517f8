import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from '@jest/globals';

const root = join(import.meta.dirname, '../..');

/** The modules of the tests that a file imports. */
const importsOf = (path: string): string[] =>
  [...readFileSync(join(root, path), 'utf8').matchAll(/(?:from|import) '(\.[^']+\.ts)'/g)]
    .map(([, imported = '']) => normalize(join(dirname(path), imported)))
    .filter((imported) => imported.includes('test/') && existsSync(join(root, imported)));

/** A file with all that it imports, and so on. */
function reachedFrom(path: string, reached = new Set<string>()): Set<string> {
  if (reached.has(path)) return reached;
  reached.add(path);
  for (const imported of importsOf(path)) reachedFrom(imported, reached);
  return reached;
}

it('Only Chromium is brought for files that npm test runs, so that a machine with Node and git alone passes', () => {
  const files = globSync('{test,src/dialect/test}/**/*.{unit,int,fault,e2e,replay}.ts', { cwd: root });
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((file) =>
    [...reachedFrom(file)]
      .filter((path) => /programPath\('(?!chromium')/.test(readFileSync(join(root, path), 'utf8')))
      .map((path) => `${file}: ${path}`),
  );
  expect(found).toEqual([]);
});
