import { execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LaunchError } from '../../../src/local_stack/data_folder.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { deploymentOn } from '../exportd.ts';
import { medianOf, megabytes, rounded, type ResultTable } from '../results.ts';
import { measureOnScratch, type ScratchOptions } from '../scratch.ts';
import { cpuSecondsOf, memoryOf } from '../usage.ts';

/** The options of the command line. */
interface StartBenchOptions extends ScratchOptions {
  readonly repeat: number;
}

/** Result of `npm run bench -- start`. */
type StartBenchResult = Awaited<ReturnType<typeof runStartBench>>;

const root = join(import.meta.dirname, '../../..');
/** What a package runs. */
const program = join(root, 'dist/src/cli/main.js');

const readyLines = { server: 'Server is listening', worker: 'The worker is running' } as const;

interface Start {
  readonly seconds: number;
  readonly cpu_seconds: number | null;
  readonly resident: number | null;
}

/**
 * Measures how soon the build is ready, with an empty and with a full compile cache: a server and a worker that start
 * together, and commands that only ask. @throws LaunchError when a process ends
 */
export async function runStartBench(options: StartBenchOptions, report: Report, signal: AbortSignal) {
  report('Building the package');
  execFileSync(process.execPath, [join(root, 'src/build/build.ts')], { cwd: root, stdio: 'ignore' });
  if (!existsSync(program)) throw new LaunchError(`There is no ${program}.`);
  const caches = mkdtempSync(join(tmpdir(), 'exportd-compile-cache-'));
  try {
    return await measureOnScratch(options, report, signal, async ({ stack }) => {
      const { environment } = await deploymentOn(stack, 'start', { EXPORTD_PORT: '0' });
      const measured = [];
      for (let number = 0; number < options.repeat; number += 1) {
        const env = {
          ...environment,
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: join(caches, String(number)),
        };
        for (const cache of ['empty', 'full'] as const) {
          const [server, worker] = await Promise.all([start('server', env), start('worker', env)]);
          const commands = { help: await timeOf(['--help'], env), status: await timeOf(statusOfNone, env) };
          measured.push({ cache, server, worker, ...commands });
          report(`${cache} cache: server ${String(server.seconds)} s, worker ${String(worker.seconds)} s`);
        }
      }
      return { repeat: options.repeat, measured };
    });
  } finally {
    rmSync(caches, { recursive: true, force: true });
  }
}

/** Starts a process and ends it once it is ready. */
async function start(part: keyof typeof readyLines, env: NodeJS.ProcessEnv): Promise<Start> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['--enable-source-maps', program, part], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  let log = '';
  const ready = new Promise<void>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text;
      if (log.includes(readyLines[part])) resolve();
    });
  });
  await Promise.race([
    ready,
    exited.then(() => {
      throw new LaunchError(`The ${part} has ended: ${log}`);
    }),
  ]);
  const pid = child.pid ?? 0;
  const result = {
    seconds: rounded((performance.now() - startedAt) / 1_000),
    cpu_seconds: cpuSecondsOf(pid),
    resident: memoryOf(pid)?.resident ?? null,
  };
  child.kill('SIGTERM');
  await exited;
  return result;
}

/** It fails at once, after it has loaded what it needs. */
const statusOfNone = ['status', '--base-url', 'http://127.0.0.1:1', '--key', 'none'];

/** Seconds of a command. */
async function timeOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const startedAt = performance.now();
  await new Promise<void>((resolve) => {
    execFile(process.execPath, ['--enable-source-maps', program, ...args], { env }, () => resolve());
  });
  return rounded((performance.now() - startedAt) / 1_000);
}

/** The result as a table. */
export function startTables({ measured }: StartBenchResult): ResultTable[] {
  const rows = (['empty', 'full'] as const).map((cache) => {
    const all = measured.filter((one) => one.cache === cache);
    const medianBy = (valueOf: (one: (typeof all)[number]) => number | null): number =>
      medianOf(all.map((one) => valueOf(one) ?? Number.NaN));
    const median = (valueOf: Parameters<typeof medianBy>[0]): string => medianBy(valueOf).toFixed(2);
    return [
      cache,
      median(({ server, worker }) => Math.max(server.seconds, worker.seconds)),
      median(({ server }) => server.cpu_seconds),
      median(({ worker }) => worker.cpu_seconds),
      megabytes(medianBy(({ server }) => server.resident)),
      megabytes(medianBy(({ worker }) => worker.resident)),
      median(({ help }) => help),
      median(({ status }) => status),
    ];
  });
  const headings = ['compile cache', 'ready s', 'server CPU s', 'worker CPU s', 'server MB', 'worker MB'];
  return [{ headings: [...headings, '--help s', 'status s'], rows }];
}
