import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import module from 'node:module';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { installedPath, isBuild, root } from '../../config/installation.ts';

/** How a response may be compressed. */
type Encoding = 'br' | 'gzip' | 'identity';

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

/** A file that is compressed once, when it is first requested. */
export interface CompressedFile {
  encode(encoding: Encoding): Promise<Buffer>;
}

/** Keeps each compressed form of a file. */
export function createCompressedFile(content: Buffer): CompressedFile {
  const encoded = new Map<Encoding, Promise<Buffer>>([['identity', Promise.resolve(content)]]);
  return {
    encode: (encoding) => {
      const known = encoded.get(encoding);
      if (known) return known;
      const compressed = encoding === 'br' ? toBrotli(content) : compressGzip(content, { level: 9 });
      encoded.set(encoding, compressed);
      return compressed;
    },
  };
}

// The best quality takes thirty times as long and saves a twentieth.
const toBrotli = (content: Buffer): Promise<Buffer> =>
  compressBrotli(content, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
  });

/** The smallest encoding that a request accepts. A quality of zero excludes one. */
export function acceptedEncoding(header: string | readonly string[] | undefined): Encoding {
  const accepted = new Set(
    [header ?? '']
      .flat()
      .join(',')
      .split(',')
      .filter((part) => !/;\s*q=0(\.0*)?\s*$/.test(part))
      .map((part) => part.split(';', 1)[0]?.trim().toLowerCase()),
  );
  if (accepted.has('br')) return 'br';
  return accepted.has('gzip') ? 'gzip' : 'identity';
}

/** The modules that a page of the console needs beside those of every page. */
interface PageModules {
  /** Matches the path of the page. */
  readonly path: RegExp;
  readonly modules: readonly string[];
}

const routesModule = 'router/routes.ts';

/** The modules that every page needs before its first paint. */
const firstModules = (modules: ReadonlyMap<string, string>): ReadonlySet<string> =>
  staticImports('main.ts', modules);

/**
 * The modules of each page that src/console/router/routes.ts names, in its order: the first that matches wins.
 * @param first the modules of `firstModules`, which are left out
 */
function pageModules(
  modules: ReadonlyMap<string, string>,
  first: ReadonlySet<string>,
): readonly PageModules[] {
  const routes = modules.get(routesModule) ?? '';
  return [...routes.matchAll(/pattern: '([^']+)',\s*load: \(\) => import\('([^']+)'\)/g)].map(
    ([, pattern = '', specifier = '']) => ({
      path: new RegExp(`^${pattern.replaceAll(/:\w+/g, '[^/]+').replace(/\/$/, '')}/?$`),
      modules: [...staticImports(resolve(routesModule, specifier), modules)].filter(
        (path) => !first.has(path),
      ),
    }),
  );
}

/** The modules that a module imports statically, and those that they import, with itself. */
function staticImports(
  path: string,
  modules: ReadonlyMap<string, string>,
  found = new Set<string>(),
): Set<string> {
  const text = modules.get(path);
  if (text === undefined || found.has(path)) return found;
  found.add(path);
  for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\b[^;]*?from '(\.[^']+)'/gm))
    staticImports(resolve(path, specifier), modules, found);
  return found;
}

const resolve = (from: string, specifier: string): string =>
  join(from, '..', specifier).replaceAll('\\', '/');

/** A package that the console uses, as browsers load it. */
interface VendorModule {
  /** What browser code imports. */
  readonly name: string;
  /** Its file below node_modules. */
  readonly file: string;
  /** Code after the file's own, to export what a script defines. */
  readonly suffix?: string;
}

/** The packages of the import map. */
const vendorModules: readonly VendorModule[] = [
  { name: 'preact', file: 'preact/dist/preact.mjs' },
  { name: 'preact/hooks', file: 'preact/hooks/dist/hooks.mjs' },
  { name: '@preact/signals-core', file: '@preact/signals-core/dist/signals-core.module.js' },
  { name: '@preact/signals', file: '@preact/signals/dist/signals.module.js' },
  { name: 'htm', file: 'htm/dist/htm.module.js' },
  // The package has its module only unminified, three times as large.
  { name: 'uplot', file: 'uplot/dist/uPlot.iife.min.js', suffix: '\nexport default uPlot;\n' },
];

const assetsPath = '/console/assets';

/** The client of the API is outside of the console: by this URL, relative to one of its modules, browsers find it. */
const clientUrl = `${assetsPath}/client/client.ts`;
const clientPath = 'vendor/exportd_client.js';
/** What the client imports, by its own name beside it. */
const exactNumbers = 'exact_numbers.ts';

const consoleFolder = installedPath('src/console');

/** A file of the console as it is sent. */
interface ConsoleFile extends CompressedFile {
  readonly type: string;
}

/** The files of the console, by their path below `base`. */
export interface ConsoleFiles {
  /** Names the version of all files, so that browsers may keep each of them indefinitely. */
  readonly base: string;
  readonly files: ReadonlyMap<string, ConsoleFile>;
  /** What `import` finds by a package's name, or a URL of the server. */
  readonly imports: Readonly<Record<string, string>>;
  /** The modules that every page needs before its first paint. */
  readonly preloads: readonly string[];
  /** What each page needs beside them. The browser loads the other pages when it is idle. */
  readonly pages: readonly PageModules[];
  /** The script that runs before the first paint, and the module that starts the console. */
  readonly scripts: { readonly theme: string; readonly main: string };
}

/** What a build knows of its files, in `contentsFile`. */
export type BuiltContents = Pick<ConsoleFiles, 'preloads' | 'scripts'> & {
  /** Paths of pages as the sources of regular expressions. */
  readonly pages: readonly { readonly path: string; readonly modules: readonly string[] }[];
};

/** Names the modules of a build in the folder of its console. */
export const contentsFile = 'contents.json';

const script = 'text/javascript; charset=utf-8';
const stylesheet = 'console.css';
/** Sent first, in this order; the other rules follow by name, those of pages last. */
const firstStyles = ['styles/tokens.css', 'styles/base.css', 'uplot.css'];

/** Reads the console of a build, or else of the sources. */
export const readConsoleFiles = (): ConsoleFiles => (isBuild ? readBuild() : readSources());

function readBuild(): ConsoleFiles {
  const { preloads, pages, scripts } = JSON.parse(readText(contentsFile)) as BuiltContents;
  const contents = new Map(
    readdirSync(consoleFolder)
      .filter((path) => path !== contentsFile)
      .sort()
      .map((path) => [path, readText(path)] as const),
  );
  return {
    ...filesOf(contents),
    imports: {},
    preloads,
    pages: pages.map(({ path, modules }) => ({ path: new RegExp(path), modules })),
    scripts,
  };
}

/** Reads src/console and the packages that it uses, without types. Takes a tenth of a second. */
function readSources(): ConsoleFiles {
  const paths = readdirSync(consoleFolder, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .sort();
  const modules = paths
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path, readModule(join(consoleFolder, path))] as const);
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
    [clientPath, readModule(join(root, 'src/client/client.ts'))],
    [`vendor/${exactNumbers}`, readModule(join(root, 'src/client', exactNumbers))],
    ...paths.filter((path) => path.endsWith('.svg')).map((path) => [path, readText(path)] as const),
    [stylesheet, styles.map(([, text]) => text).join('\n')],
  ]);
  const { base, files } = filesOf(contents);
  const moduleTexts = new Map(modules);
  const first = firstModules(moduleTexts);
  return {
    base,
    files,
    imports: {
      ...Object.fromEntries(vendorModules.map(({ name }) => [name, `${base}/${vendorPath(name)}`])),
      [clientUrl]: `${base}/${clientPath}`,
    },
    preloads: [
      clientPath,
      `vendor/${exactNumbers}`,
      ...vendorModules.filter(({ name }) => name !== 'uplot').map(({ name }) => vendorPath(name)),
      ...first,
    ],
    pages: pageModules(moduleTexts, first),
    scripts: { theme: 'theme_before_paint.ts', main: 'main.ts' },
  };
}

const filesOf = (contents: ReadonlyMap<string, string>): Pick<ConsoleFiles, 'base' | 'files'> => ({
  base: `${assetsPath}/${versionOf(contents)}`,
  files: new Map(
    [...contents].map(([path, text]) => [
      path,
      { type: typeOf(path), ...createCompressedFile(Buffer.from(text)) },
    ]),
  ),
});

/** Replaces types by spaces, so that lines and columns in a browser's messages are those of the source. */
const readModule = (path: string): string =>
  withoutWarnings(() => module.stripTypeScriptTypes(readFileSync(path, 'utf8'), { mode: 'strip' }));

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
    case '.map':
      return 'application/json';
    default:
      return script;
  }
};

function versionOf(contents: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256');
  for (const [path, text] of contents) hash.update(`${path}\0${text}\0`);
  return hash.digest('base64url').slice(0, 16);
}

/** The document of every page of the console, and the headers that restrict it. */
export interface PageShell {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

/**
 * Builds the document of a page, which needs `modules`. It is the same for every user, so it has an ETag and no nonce.
 * @param basePath what browsers put before each path of the server
 */
export function createPageShell(
  { base: path, imports, preloads, scripts }: ConsoleFiles,
  modules: readonly string[],
  basePath: string,
): PageShell {
  const base = basePath + path;
  const below = (name: string): string => (name.startsWith('/') ? basePath + name : name);
  const importMap = JSON.stringify({
    imports: Object.fromEntries(Object.entries(imports).map(([name, url]) => [below(name), below(url)])),
  });
  // A build has its packages in its own modules.
  const hasImports = Object.keys(imports).length > 0;
  const preload = (path: string) => `<link rel="modulepreload" href="${base}/${path}">`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>exportd</title>
<link rel="icon" href="${base}/icon.svg" type="image/svg+xml">
<script src="${base}/${scripts.theme}"></script>
<link rel="stylesheet" href="${base}/console.css">
${hasImports ? `<script type="importmap">${importMap}</script>\n` : ''}${[...preloads, ...modules].map(preload).join('\n')}
<script type="module" src="${base}/${scripts.main}"></script>
</head>
<body>
<div id="root"></div>
<noscript>The console needs JavaScript. The <a href="${basePath}/api/docs">HTTP API</a> and <code>npx exportd --help</code> do the same.</noscript>
</body>
</html>
`;
  return {
    html,
    contentSecurityPolicy: [
      "default-src 'none'",
      hasImports
        ? `script-src 'self' 'sha256-${createHash('sha256').update(importMap).digest('base64')}'`
        : "script-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  };
}
