import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { buildSync, type Metafile, stop } from 'esbuild';
import { root } from '../../config/installation.ts';

/** What the server knows of the files of the console, by their names. */
export interface ConsoleContents {
  /** The script that runs before the first paint. */
  readonly theme: string;
  /** The module that starts the console. */
  readonly main: string;
  readonly styles: string;
  readonly icon: string;
  /** The modules that every page needs before its first paint. */
  readonly preloads: readonly string[];
  /** What each page needs beside them, in the order of the routes: the first that matches wins. */
  readonly pages: readonly PageModules[];
}

interface PageModules {
  /** Matches the path of the page, as the source of a regular expression. */
  readonly path: string;
  /** The module of the page first. */
  readonly modules: readonly string[];
}

/** The console as browsers load it. */
export interface ConsoleBundle {
  readonly contents: ConsoleContents;
  /** The files by their names, which have the hash of what is in them. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** The sources and packages that became part of it. */
  readonly inputs: ReadonlySet<string>;
}

const folder = 'src/console';

/** Files that begin a bundle beside the pages, by the name of what they become. */
const entryPoints = {
  main: `${folder}/main.ts`,
  theme: `${folder}/theme_before_paint.ts`,
  console: `${folder}/console.css`,
  icon: `${folder}/icon.svg`,
  // What the first plot loads.
  plots: 'uplot',
};

/**
 * Bundles the console by esbuild: a file of each page, and of what several pages share. Takes an eighth of a second, without a
 * process that stays.
 */
export function bundleConsole(): ConsoleBundle {
  const routes = readRoutes();
  const { outputFiles, metafile } = buildSync({
    absWorkingDir: root,
    entryPoints: {
      ...entryPoints,
      ...Object.fromEntries(routes.map(({ source }) => [pageOf(source), source])),
    },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: true,
    loader: { '.svg': 'copy' },
    entryNames: '[name]-[hash]',
    chunkNames: 'shared-[hash]',
    outdir: root,
    write: false,
    metafile: true,
    // The notices of a package have the licences (src/build).
    legalComments: 'none',
    // Maps would be most of what is sent.
    sourcemap: false,
    logLevel: 'warning',
  });
  // Its process would stay as long as this one.
  void stop();
  const nameOf = (source: string): string => basename(outputOf(metafile, source));
  const preloads = modulesOf(metafile, entryPoints.main);
  return {
    contents: {
      theme: nameOf(entryPoints.theme),
      main: nameOf(entryPoints.main),
      styles: nameOf(entryPoints.console),
      icon: nameOf(entryPoints.icon),
      preloads,
      pages: routes.map(({ path, source }) => ({
        path,
        modules: modulesOf(metafile, source).filter((name) => !preloads.includes(name)),
      })),
    },
    files: new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)])),
    inputs: new Set(
      Object.values(metafile.outputs).flatMap(({ inputs }) =>
        Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
      ),
    ),
  };
}

/** The routes of src/console/router/routes.ts, which browsers alone can run: the source of each page, and what matches its path. */
function readRoutes(): readonly { readonly path: string; readonly source: string }[] {
  const module = `${folder}/router/routes.ts`;
  const text = readFileSync(join(root, module), 'utf8');
  return [...text.matchAll(/pattern: '([^']+)',\s*load: \(\) => import\('([^']+)'\)/g)].map(
    ([, pattern = '', specifier = '']) => ({
      path: `^${pattern.replaceAll(/:\w+/g, '[^/]+').replace(/\/$/, '')}/?$`,
      source: join(module, '..', specifier),
    }),
  );
}

/** `query` of `src/console/pages/query/page.ts`. */
const pageOf = (source: string): string => basename(dirname(source));

/** The file that a source became. */
function outputOf({ outputs }: Metafile, source: string): string {
  const found = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === source);
  if (!found) throw new Error(`The bundle of the console has no ${source}.`);
  return found[0];
}

/** The names of the file that a module became, and of those that it imports statically. */
function modulesOf(metafile: Metafile, source: string): readonly string[] {
  const found = new Set<string>();
  const add = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    for (const { path: imported, kind } of metafile.outputs[path]?.imports ?? [])
      if (kind === 'import-statement') add(imported);
  };
  add(outputOf(metafile, source));
  return [...found].map((path) => basename(path));
}
