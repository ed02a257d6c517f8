import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { installedPath, isBuild } from '../../config/installation.ts';
import type { ConsoleBundle, ConsoleContents } from './bundle_console.ts';

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

/** Where browsers find the files. */
const assetsPath = '/console/assets';

/** Names the files of a build in the folder of its console. */
export const contentsFile = 'contents.json';

/** A file of the console as it is sent. */
interface ConsoleFile extends CompressedFile {
  readonly type: string;
}

/** The console, with its files by their names. */
interface ConsoleFiles extends ConsoleContents {
  readonly files: ReadonlyMap<string, ConsoleFile>;
}

/** The console of this process: in a clone, all of its servers share the bundle. */
let known: Promise<ConsoleFiles> | undefined;

/** Reads the console of a build, or else bundles the sources of a clone. */
export const readConsoleFiles = (): Promise<ConsoleFiles> =>
  (known ??= (isBuild ? readBuild() : bundleSources()).then(({ contents, files }) => ({
    ...contents,
    files: new Map(
      [...files].map(([name, content]) => [name, { type: typeOf(name), ...createCompressedFile(content) }]),
    ),
  })));

async function readBuild(): Promise<Pick<ConsoleBundle, 'contents' | 'files'>> {
  const folder = installedPath('src/console');
  const names = (await readdir(folder)).filter((name) => name !== contentsFile);
  const files = await Promise.all(
    names.map(async (name) => [name, await readFile(join(folder, name))] as const),
  );
  const contents = JSON.parse(await readFile(join(folder, contentsFile), 'utf8')) as ConsoleContents;
  return { contents, files: new Map(files) };
}

/** A build lacks esbuild, and its module. */
const bundleSources = async (): Promise<ConsoleBundle> =>
  (await import('./bundle_console.ts')).bundleConsole();

function typeOf(name: string): string {
  switch (extname(name)) {
    case '.css':
      return 'text/css; charset=utf-8';
    case '.svg':
      return 'image/svg+xml';
    default:
      return 'text/javascript; charset=utf-8';
  }
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
  { theme, main, styles, icon, preloads }: ConsoleContents,
  modules: readonly string[],
  basePath: string,
): PageShell {
  const urlOf = (name: string): string => `${basePath}${assetsPath}/${name}`;
  const preload = (name: string) => `<link rel="modulepreload" href="${urlOf(name)}">`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>exportd</title>
<link rel="icon" href="${urlOf(icon)}" type="image/svg+xml">
<script src="${urlOf(theme)}"></script>
<link rel="stylesheet" href="${urlOf(styles)}">
${[...preloads, ...modules].map(preload).join('\n')}
<script type="module" src="${urlOf(main)}"></script>
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
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  };
}
