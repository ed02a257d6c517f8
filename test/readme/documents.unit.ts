import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const root = join(import.meta.dirname, '../..');

/** The text without blocks of code, whose comments look like headings. */
const withoutCode = (text: string): string => text.replace(/^```.*?^```$/gms, '');

/** Every file of the repository. Packages and the data of a running stack are not part of it. */
const files = readdirSync(root, { withFileTypes: true })
  .filter(({ name }) => !/^(node_modules|\.git|\.exportd.*)$/.test(name))
  .flatMap((entry) =>
    entry.isDirectory()
      ? readdirSync(join(root, entry.name), { recursive: true, encoding: 'utf8' }).map((path) =>
          join(entry.name, path),
        )
      : [entry.name],
  );

const documents = files
  .filter((path) => path.endsWith('.md'))
  .map((path) => ({ path, text: withoutCode(readFileSync(join(root, path), 'utf8')) }));

const textOf = (path: string): string => documents.find((document) => document.path === path)?.text ?? '';

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/ /g, '-');

const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));

/** Whether the target of a link in a file exists, with its anchor. */
function leadsSomewhere(path: string, target: string): boolean {
  const [file = '', anchor] = target.split('#');
  const found = file === '' ? path : join(dirname(path), file);
  return existsSync(join(root, found)) && (anchor === undefined || anchorsOf(textOf(found)).includes(anchor));
}

/** The files that a text names as code: `run.ts`, `parquet/file.ts`. */
const namedFilesOf = (text: string): string[] =>
  [...text.matchAll(/`(?:\.\.\/)*([\w-][\w./-]*\.(?:ts|mjs|cjs|js))`/g)].map(([, path = '']) => path);

describe('a Markdown file', () => {
  it.each(documents)('has only links that lead somewhere: $path', ({ path, text }) => {
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
    const relativeOnes = targets.filter((target) => !/^[a-z]+:/.test(target));
    expect(relativeOnes.filter((target) => !leadsSomewhere(path, target))).toEqual([]);
  });

  it.each(documents)('names only source files that exist: $path', ({ text }) => {
    const exists = (named: string) => files.some((path) => `/${path}`.endsWith(`/${named}`));
    expect(namedFilesOf(text).filter((named) => !exists(named))).toEqual([]);
  });
});

describe('the way of a backfill', () => {
  const steps = [...textOf('src/README.md').matchAll(/^1\. `([\w.]+)` \(`([\w./]+)`\)/gm)].map(
    ([, name = '', path = '']) => ({ name: name.split('.').at(-1) ?? '', path }),
  );

  it('has at most fifteen functions', () => {
    expect(steps.length).toBeGreaterThan(0);
    expect(steps.length).toBeLessThanOrEqual(15);
  });

  it.each(steps)('has $name in $path', ({ name, path }) => {
    const found = files.find((file) => file === path || file === join('src', path)) ?? '';
    const source = readFileSync(join(root, found), 'utf8');
    expect(source).toMatch(new RegExp(`(function|const|static|static async) ${name}\\b`));
  });
});

it('all Markdown has at most 45,000 words', () => {
  const words = documents.reduce(
    (sum, { path }) => sum + readFileSync(join(root, path), 'utf8').split(/\s+/).filter(Boolean).length,
    0,
  );
  expect(words).toBeLessThanOrEqual(45_000);
});
