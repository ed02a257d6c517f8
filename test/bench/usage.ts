import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { bounds } from '../../src/config/bounds.ts';
import type { Pool } from '../../src/journal/database.ts';
import type { DataFolder } from '../../src/local_stack/data_folder.ts';
import { readIdentity } from '../../src/local_stack/lock.ts';
import { rounded } from './results.ts';

/** Clock ticks per second in /proc, the same on every Linux. */
const ticksPerSecond = 100;

/** User and system CPU seconds of a process with all its threads; null without /proc. */
export const cpuSecondsOf = (pid: number): number | null => secondsIn(statFields(pid));

/** Those of its main thread alone. */
export const mainThreadSecondsOf = (pid: number): number | null =>
  secondsIn(statFields(pid, `task/${pid}/stat`));

const secondsIn = (fields: readonly string[] | null): number | null =>
  fields === null ? null : (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;

/** CPU seconds of the programs of a scratch stack; null without /proc, or where the environment brought the server. */
export interface ProgramSeconds {
  readonly worker: number | null;
  readonly postgresql: number | null;
  readonly s3: number | null;
  /** Temporal and exportd's server. */
  readonly temporal: number | null;
}

/** Watches the programs whose processes a stack recorded, until the returned function is called. */
export function watchPrograms(folder: DataFolder): () => ProgramSeconds {
  const watched = watchCpu(folder);
  return () => {
    const seconds = watched();
    const used = (...programs: string[]): number | null => {
      const sum = programs.reduce((total, program) => total + (seconds.get(program) ?? Number.NaN), 0);
      return Number.isNaN(sum) ? null : rounded(sum);
    };
    return {
      worker: used('worker'),
      postgresql: used('postgresql'),
      s3: used('s3'),
      temporal: used('temporal', 'server'),
    };
  };
}

/** As `watchPrograms`: the seconds by the name of the program, of all its processes. */
export function watchCpu(folder: DataFolder): () => ReadonlyMap<string, number> {
  const before = secondsByProgram(folder);
  return () =>
    new Map(
      [...secondsByProgram(folder)].map(([program, seconds]) => [
        program,
        seconds - (before.get(program) ?? Number.NaN),
      ]),
    );
}

/** By the name of the program. PostgreSQL has a process for each connection, most of which outlive the measurement. */
function secondsByProgram(folder: DataFolder): ReadonlyMap<string, number> {
  const files = readdirSync(folder.inside('processes')).filter((file) => file.endsWith('.json'));
  const processes = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []));
  const parents = new Map(processes.map((pid) => [pid, Number(statFields(pid)?.[1])]));
  const secondsOf = new Map<string, number>();
  for (const file of files) {
    const { pid = Number.NaN } = readIdentity(folder.inside('processes', file)) ?? {};
    const own = [pid, ...processes.filter((one) => parents.get(one) === pid)];
    const ended = statFields(pid)?.slice(13, 15).map(Number) ?? [Number.NaN];
    const ticks = ended.reduce((sum, one) => sum + one, 0);
    const program = programOf(file);
    const seconds = own.reduce((sum, one) => sum + (cpuSecondsOf(one) ?? 0), ticks / ticksPerSecond);
    secondsOf.set(program, (secondsOf.get(program) ?? 0) + seconds);
  }
  return secondsOf;
}

/** `worker` of `worker-2.json`: several processes may have one program. */
const programOf = (processFile: string): string => processFile.replace(/(-\d+)?\.json$/, '');

/** Memory of a process in bytes. */
interface ProcessMemory {
  readonly resident: number;
  /** Maximum resident memory since the start of the process, or since `resetPeakMemory`. */
  readonly peak: number;
}

/** Memory of a process; null without /proc. */
export function memoryOf(pid: number): ProcessMemory | null {
  const text = read(pid, 'status');
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text ?? '')?.[1]);
  const [resident, peak] = [kibibytes('VmRSS') * 1_024, kibibytes('VmHWM') * 1_024];
  return Number.isNaN(resident) || Number.isNaN(peak) ? null : { resident, peak };
}

/** Resets the peak to the current resident memory, if the system allows it. */
export function resetPeakMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Not Linux, or a container that forbids it. The peak since the start is only too high.
  }
}

/** The fields after the name, which may contain spaces and parentheses. */
function statFields(pid: number, name = 'stat'): string[] | null {
  const text = read(pid, name);
  return text === null ? null : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function read(pid: number, name: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return null;
  }
}

/** Transactions of a database: a session reports what it has done when it is idle for a second. */
export async function commitsOf(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ commits: number }>(
    `select sum(xact_commit)::float8 as commits from pg_stat_database where datname = current_database()`,
  );
  return rows[0]?.commits ?? Number.NaN;
}

/** Requests to S3 since the start of a worker, from its metrics. Takes a second. */
export async function s3RequestsOf(workerHttpPort: number): Promise<number> {
  // A worker sends the text of the last second again, which lacks the requests of a short export.
  await delay(1.1 * bounds.monitoringAge.max);
  const response = await fetch(`http://127.0.0.1:${String(workerHttpPort)}/metrics`, {
    signal: AbortSignal.timeout(5_000),
  });
  return requestsIn(await response.text());
}

/** The sum of `exportd_s3_requests_total` over all labels. */
export const requestsIn = (metrics: string): number =>
  [...metrics.matchAll(/^exportd_s3_requests_total\S* (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
