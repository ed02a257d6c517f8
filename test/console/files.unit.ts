import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { readConsoleFiles, type ConsoleFiles } from '../../src/http/console/console_files.ts';
import { intervalLetters } from '../../src/http/console/pages/schema.ts';
import { intervalLooks, statusOfLetter } from '../../src/console/components/statuses.ts';
import { intervalStatuses } from '../../src/http/intervals/schema.ts';

const folder = join(import.meta.dirname, '../../src/console');
const sources = (extension: string): [path: string, text: string][] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(extension))
    .map((path) => [path, readFileSync(join(folder, path), 'utf8')]);

describe('the files of the console', () => {
  let files: ConsoleFiles;
  beforeAll(() => {
    files = readConsoleFiles();
  });

  it('take less than 165 kB on the wire, all pages and plots together', async () => {
    const sizes = await Promise.all(
      [...files.files].map(async ([path, file]) => [path, (await file.encode('br')).length] as const),
    );
    const total = sizes.reduce((sum, [, size]) => sum + size, 0);
    expect({ total, isSmall: total < 165_000, sizes }).toMatchObject({ isSmall: true });
  });

  it('import only files that are sent and packages of the import map', async () => {
    const texts = await Promise.all(
      [...files.files]
        .filter(([path]) => path.endsWith('.ts'))
        .map(async ([path, file]) => [path, (await file.encode('identity')).toString()] as const),
    );
    const missing = texts.flatMap(([path, text]) =>
      [...text.matchAll(/(?:\bfrom |\bimport\(|^import )'([^']+)'/gm)].flatMap(([, specifier = '']) => {
        const found =
          files.files.has(join(path, '..', specifier)) ||
          (specifier.startsWith('.')
            ? new URL(specifier, `http://host${files.base}/${path}`).pathname
            : specifier) in files.imports;
        return found ? [] : [`${path}: ${specifier}`];
      }),
    );
    expect(texts.length).toBeGreaterThan(30);
    expect(missing).toEqual([]);
  });

  it('preload what every page imports', () => {
    const { preloads } = files;
    expect(preloads).toEqual(expect.arrayContaining(['main.ts', 'app.ts', 'html.ts', 'api/client.ts']));
    expect(preloads.filter((path) => path.startsWith('pages/') && path !== 'pages/sign_in/page.ts')).toEqual(
      [],
    );
    expect(preloads.filter((path) => !files.files.has(path))).toEqual([]);
  });

  it.each([
    ['/', 'pages/exports/page.ts'],
    ['/exports/new', 'pages/edit/page.ts'],
    ['/exports/1', 'pages/export/page.ts'],
    ['/exports/1/', 'pages/export/page.ts'],
    ['/exports/1/edit', 'pages/edit/page.ts'],
    ['/exports/1/intervals/2026-11-22T20%3A00%3A00Z', 'pages/interval/page.ts'],
    ['/query', 'pages/query/page.ts'],
    ['/keys', 'pages/keys/page.ts'],
    ['/audit', 'pages/audit/page.ts'],
    ['/exports/1/other', undefined],
  ])('preload at %s the page and what it imports alone', (path, module) => {
    const { modules = [] } = files.pages.find((page) => page.path.test(path)) ?? {};
    expect(modules[0]).toBe(module);
    expect(modules.filter((one) => one.endsWith('/page.ts')).length).toBeLessThanOrEqual(1);
    expect(modules.filter((one) => files.preloads.includes(one) || !files.files.has(one))).toEqual([]);
  });

  it('have the rules of pages after those that they change', async () => {
    const css = (await files.files.get('console.css')?.encode('identity'))?.toString() ?? '';
    expect(css.indexOf('.wide-facts {')).toBeGreaterThan(css.indexOf('.facts {'));
  });
});

describe('styles', () => {
  it('take every colour from styles/tokens.css', () => {
    const literals = sources('.css').flatMap(([path, text]) =>
      path === 'styles/tokens.css'
        ? []
        : [...text.matchAll(/#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|oklch)\(/gi)].map(
            ([found]) => `${path}: ${found}`,
          ),
    );
    expect(literals).toEqual([]);
  });

  it('take every font size from the type scale', () => {
    const sizes = sources('.css').flatMap(([path, text]) =>
      [...text.matchAll(/font-size:\s*([^;]+);/g)].map(([, value = '']) => ({ path, value })),
    );
    expect(sizes.length).toBeGreaterThan(10);
    expect(sizes.filter(({ value }) => !/^var\(--text-[1-5]\)$/.test(value))).toEqual([]);
  });

  it('define every custom property that they use', () => {
    const all =
      sources('.css')
        .map(([, text]) => text)
        .join('\n') +
      sources('.ts')
        .map(([, text]) => text)
        .join('\n');
    const defined = new Set([...all.matchAll(/[\s'](--[\w-]+)'?:/g)].map(([, name]) => name));
    const used = new Set([...all.matchAll(/var\((--[\w-]+)\)/g)].map(([, name]) => name));
    expect([...used].filter((name) => !defined.has(name))).toEqual([]);
  });
});

describe('statuses of intervals', () => {
  it('have a letter, and each a look of its own', () => {
    expect(intervalStatuses.map((status) => statusOfLetter(intervalLetters[status]))).toEqual(
      intervalStatuses,
    );
    const looks = Object.values(intervalLooks).map(({ tone, shape }) => `${tone} ${shape}`);
    expect(new Set(looks).size).toBe(looks.length);
    // Without colours, shapes alone tell them apart.
    expect(new Set(Object.values(intervalLooks).map(({ shape }) => shape)).size).toBe(looks.length);
  });
});
