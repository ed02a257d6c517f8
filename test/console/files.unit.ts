import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { bundleConsole } from '../../src/http/console/bundle_console.ts';
import { intervalLetters } from '../../src/http/console/pages/schema.ts';
import { intervalLooks, statusOfLetter } from '../../src/console/components/statuses.ts';
import { intervalStatuses } from '../../src/http/intervals/schema.ts';
import { waitFor } from '../setup/wait_for.ts';

const folder = join(import.meta.dirname, '../../src/console');
const sources = (extension: string): [path: string, text: string][] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(extension))
    .map((path) => [path, readFileSync(join(folder, path), 'utf8')]);

/** The contrast of two colours like `#3451d1`, from 1 to 21 (WCAG 2.2). */
function contrastOf(one: string, other: string): number {
  const luminanceOf = (colour: string): number => {
    const [red = NaN, green = NaN, blue = NaN] = [1, 3, 5].map((start) => {
      const value = parseInt(colour.slice(start, start + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [darker = NaN, lighter = NaN] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** A file of /proc, empty once its thread or process has ended: that may happen between its listing and its reading. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

describe('the files of the console', () => {
  const { contents, files } = bundleConsole();

  it('take less than 130 kB on the wire, all pages and plots together', () => {
    const sizes = [...files].map(([name, content]) => [name, brotliCompressSync(content).length] as const);
    const total = sizes.reduce((sum, [, size]) => sum + size, 0);
    expect({ total, isSmall: total < 130_000, sizes }).toMatchObject({ isSmall: true });
  });

  it('have names with the hash of what is in them, which stay while it stays', () => {
    for (const name of files.keys()) expect(name).toMatch(/^\w+-[0-9A-Z]{8}\.(js|css|svg)$/);
    expect(bundleConsole().contents).toEqual(contents);
  });

  it('leave no process of esbuild', async () => {
    const children = () =>
      readdirSync('/proc/self/task').flatMap((thread) =>
        textOf(`/proc/self/task/${thread}/children`).split(' ').filter(Boolean),
      );
    const isEsbuild = (id: string) => textOf(`/proc/${id}/cmdline`).includes('esbuild');
    await waitFor(() => !children().some(isEsbuild), 'the end of esbuild', 3_000);
  });

  it('load no file before they are needed: plots are drawn by one that no page begins with', () => {
    const { preloads, pages } = contents;
    const begun = [...preloads, ...pages.flatMap(({ modules }) => modules)];
    expect([...files.keys()].filter((name) => name.startsWith('plots-'))).toHaveLength(1);
    expect(begun.filter((name) => name.startsWith('plots-') || !files.has(name))).toEqual([]);
  });

  it.each([
    ['/', 'exports'],
    ['/exports/new', 'edit'],
    ['/exports/1', 'export'],
    ['/exports/1/', 'export'],
    ['/exports/1/edit', 'edit'],
    ['/exports/1/intervals/2026-11-22T20%3A00%3A00Z', 'interval'],
    ['/query', 'query'],
    ['/keys', 'keys'],
    ['/audit', 'audit'],
    ['/source', 'source'],
    ['/webhooks', 'webhooks'],
    ['/exports/1/other', undefined],
  ])('are at %s at most five modules, of them one of a page', (path, page) => {
    const { preloads, pages } = contents;
    const { modules = [] } = pages.find((one) => new RegExp(one.path).test(path)) ?? {};
    expect(modules[0]?.split('-')[0]).toBe(page);
    expect(modules.slice(1).filter((name) => !name.startsWith('shared-'))).toEqual([]);
    // A page that does not import components/shared.ts makes a file of each module that it shares with others.
    expect(preloads.length + modules.length).toBeLessThanOrEqual(5);
  });
});

describe('styles', () => {
  it('are all imported by console.css', () => {
    const imports = [...readFileSync(join(folder, 'console.css'), 'utf8').matchAll(/'\.\/(.+)'/g)];
    const others = sources('.css').filter(([path]) => path !== 'console.css');
    expect(imports.map(([, path]) => path).sort()).toEqual(others.map(([path]) => path).sort());
  });

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

  const tokens = new Map(
    [
      ...readFileSync(join(folder, 'styles/tokens.css'), 'utf8').matchAll(
        /(--[\w-]+): light-dark\((#\w{6})\w*, (#\w{6})\w*\)/g,
      ),
    ].map(([, name = '', light = '', dark = '']) => [name, { light, dark }]),
  );
  const used = (property: RegExp): string[] => [
    ...new Set(
      sources('.css').flatMap(([, text]) =>
        [...text.matchAll(property)].flatMap(([, value = '']) =>
          [...value.matchAll(/--[\w-]+/g)].map(String),
        ),
      ),
    ),
  ];
  /** Behind texts; the others are of bars and of what is behind a dialog. */
  const surfaces = used(/^\s*background(?:-color)?: ([^;]+);/gm).filter((name) =>
    /^--(surface|accent-soft|tone-.*-soft)/.test(name),
  );
  const texts = used(/^\s*color: ([^;]+);/gm)
    .filter((name) => name !== '--on-accent')
    .map((name) => (name === '--tone-running' ? '--accent' : name));

  it.each(['light', 'dark'] as const)('have texts that are legible on every surface: %s', (scheme) => {
    const colour = (name: string): string => tokens.get(name)?.[scheme] ?? `no ${name}`;
    expect([texts.length > 7, surfaces.length > 5]).toEqual([true, true]);
    const pairs = [
      ...texts.flatMap((text) => surfaces.map((surface) => [text, surface] as const)),
      ...['--accent', '--accent-hover', '--tone-danger'].map((surface) => ['--on-accent', surface] as const),
    ];
    // WCAG 2.2, 1.4.3, for texts of any size.
    const poor = pairs.flatMap(([text, surface]) => {
      const ratio = contrastOf(colour(text), colour(surface));
      return ratio >= 4.5 ? [] : [`${text} on ${surface}: ${ratio}`];
    });
    expect(poor).toEqual([]);
  });

  it.each(['light', 'dark'] as const)(
    'have ten colours of series, each apart from its surface: %s',
    (scheme) => {
      const series = [...tokens].filter(([name]) => name.startsWith('--series-'));
      // The first is the accent colour.
      expect(series).toHaveLength(9);
      const surfaces = ['--surface', '--surface-raised'].map((name) => tokens.get(name)?.[scheme] ?? '');
      // WCAG 2.2, 1.4.11, for graphics.
      const poor = series.filter(([, colour]) => surfaces.some((one) => contrastOf(colour[scheme], one) < 3));
      expect(poor).toEqual([]);
    },
  );

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
