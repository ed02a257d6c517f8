import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';
import { createCompressedFile, type CompressedFile } from './asset_encodings.ts';
import { firstModules, pageModules, type PageModules } from './page_modules.ts';
import { vendorModules } from './vendor_modules.ts';

const root = join(import.meta.dirname, '../../..');
const consoleFolder = join(root, 'src/console');

/** A file of the console as it is sent. */
export interface ConsoleFile extends CompressedFile {
  readonly type: string;
}

/** The files of the console, by their path below `base`. */
export interface ConsoleFiles {
  /** Names the version of all files, so that browsers may keep each of them indefinitely. */
  readonly base: string;
  readonly files: ReadonlyMap<string, ConsoleFile>;
  /** What `import` finds by a package's name. */
  readonly imports: Readonly<Record<string, string>>;
  /** The modules that every page needs before its first paint. */
  readonly preloads: readonly string[];
  /** What each page needs beside them. The browser loads the other pages when it is idle. */
  readonly pages: readonly PageModules[];
}

const script = 'text/javascript; charset=utf-8';
const stylesheet = 'console.css';
/** Sent first, in this order; the other rules follow by name, those of pages last. */
const firstStyles = ['styles/tokens.css', 'styles/base.css', 'uplot.css'];

/** Reads src/console and the packages that it uses, without types. Takes a tenth of a second. */
export function readConsoleFiles(): ConsoleFiles {
  const paths = readdirSync(consoleFolder, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .sort();
  const modules = paths
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path, readModule(path)] as const);
  const styles = [
    ...paths.filter((path) => path.endsWith('.css')).map((path) => [path, readText(path)] as const),
    ['uplot.css', readPackageFile('uplot/dist/uPlot.min.css')] as const,
  ].sort(([one], [other]) => styleRank(one) - styleRank(other));
  const vendor = vendorModules.map(
    ({ name, file, suffix = '' }) => [vendorPath(name), readPackageFile(file) + suffix] as const,
  );
  const contents = new Map<string, string>([
    ...modules,
    ...vendor,
    ...paths.filter((path) => path.endsWith('.svg')).map((path) => [path, readText(path)] as const),
    [stylesheet, styles.map(([, text]) => text).join('\n')],
  ]);
  const base = `/console/assets/${versionOf(contents)}`;
  const moduleTexts = new Map(modules);
  const first = firstModules(moduleTexts);
  return {
    base,
    files: new Map(
      [...contents].map(([path, text]) => [
        path,
        { type: typeOf(path), ...createCompressedFile(Buffer.from(text)) },
      ]),
    ),
    imports: Object.fromEntries(vendorModules.map(({ name }) => [name, `${base}/${vendorPath(name)}`])),
    preloads: [
      ...vendorModules.filter(({ name }) => name !== 'uplot').map(({ name }) => vendorPath(name)),
      ...first,
    ],
    pages: pageModules(moduleTexts, first),
  };
}

/** Replaces types by spaces, so that lines and columns in a browser's messages are those of the source. */
const readModule = (path: string): string =>
  withoutWarnings(() => stripTypeScriptTypes(readText(path), { mode: 'strip' }));

/**
 * Node warns that the function is experimental, between the JSON lines of the log. Which version of Node runs is fixed by
 * package-lock.json.
 */
function withoutWarnings<Result>(work: () => Result): Result {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

const readText = (path: string): string => readFileSync(join(consoleFolder, path), 'utf8');

const readPackageFile = (file: string): string => readFileSync(join(root, 'node_modules', file), 'utf8');

const vendorPath = (name: string): string => `vendor/${name.replaceAll(/[@/]/g, '_')}.js`;

const styleRank = (path: string): number => {
  const index = firstStyles.indexOf(path);
  if (index !== -1) return index;
  return firstStyles.length + (path.startsWith('pages/') ? 1 : 0);
};

const typeOf = (path: string): string => {
  switch (extname(path)) {
    case '.css':
      return 'text/css; charset=utf-8';
    case '.svg':
      return 'image/svg+xml';
    default:
      return script;
  }
};

function versionOf(contents: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256');
  for (const [path, text] of contents) hash.update(`${path}\0${text}\0`);
  return hash.digest('base64url').slice(0, 16);
}
