import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const source = join(import.meta.dirname, '..');
const { exports, dependencies } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as Readonly<
  Record<'exports' | 'dependencies', Readonly<Record<string, string>>>
>;

/** Imports all that the package exports, by name. */
const program = `
const modules = await Promise.all(${JSON.stringify(Object.keys(exports))}.map((path) => import('@exportd/dialect/' + path.slice(2))));
console.log(modules.length);
`;

describe('the package', () => {
  it('runs without the rest of exportd, on the packages that it names', () => {
    const folder = mkdtempSync(join(tmpdir(), 'exportd-dialect-'));
    try {
      const copy = join(folder, 'dialect');
      cpSync(source, copy, { recursive: true, filter: (path) => path !== import.meta.dirname });
      mkdirSync(join(folder, 'node_modules/@exportd'), { recursive: true });
      symlinkSync(copy, join(folder, 'node_modules/@exportd/dialect'));
      const { resolve } = createRequire(import.meta.filename);
      for (const name of Object.keys(dependencies))
        symlinkSync(
          dirname(realpathSync(resolve(`${name}/package.json`))),
          join(folder, 'node_modules', name),
        );
      const options = ['--input-type=module', '--eval', program];
      const output = execFileSync(process.execPath, options, { cwd: folder, encoding: 'utf8' });
      expect(Number(output)).toBe(Object.keys(exports).length);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
