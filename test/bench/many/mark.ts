/** A mark, at which the only interval of each of many exports ends: which exports there are, and how their runs went. */
import { percentileOf, rounded } from '../results.ts';

/**
 * Half of the exports have the first interval, half the second. They stand for five minutes and an hour, whose marks are too
 * far apart to wait for: each export has one run, so the length of its interval matters little.
 */
export const intervals = ['every 1 minutes', 'every 2 minutes'] as const;
type Interval = (typeof intervals)[number];

/** At each multiple of it, intervals of both lengths end. */
const markMs = 120_000;
/** Only intervals that end at the mark end after this much before it, and not after the mark. */
const shortestMs = 60_000;

/** Rows of an interval of an export that has rows. */
export const rowsPerInterval = 20;
/** Exports share their projects' rows, slots and connections. */
const exportsPerProject = 30;

/** An export, and what its run exports. */
export interface PlannedExport {
  /** Also its prefix in the bucket. */
  readonly name: string;
  readonly project: number;
  readonly interval: Interval;
  readonly rows: number;
}

/** Projects of a number of exports. The exports of the first half of them have rows. */
export const projectsFor = (exports: number): number =>
  2 * Math.max(1, Math.round(exports / exportsPerProject / 2));

/** Exports in turns over the projects: with rows or without, and of each interval, in equal numbers. */
export function planExports(exports: number): readonly PlannedExport[] {
  const projects = projectsFor(exports);
  return Array.from({ length: exports }, (_, index) => {
    const project = index % projects;
    return {
      name: `many-${String(index + 1)}`,
      project,
      interval: intervals[Math.floor(index / projects) % 2 === 0 ? 0 : 1],
      rows: project < projects / 2 ? rowsPerInterval : 0,
    };
  });
}

/** The first mark that is at least some time away, both in milliseconds. */
export const nextMark = (now: number, awayMs: number): number => Math.ceil((now + awayMs) / markMs) * markMs;

/** When the rows of a mark start. Both intervals have them. */
export const rowsStart = (markAt: number): Date => new Date(markAt - shortestMs);

/** The bounds of an export that has one interval alone: that of the mark. */
export const boundsOf = (markAt: number): { readonly start_at: string; readonly end_at: string } => ({
  start_at: new Date(markAt - shortestMs / 2).toISOString(),
  end_at: new Date(markAt).toISOString(),
});

/** A run of a mark, from the read model. */
export interface MarkRun {
  readonly batch_export_id: string;
  readonly status: string;
  readonly manifest_key: string | null;
  readonly records_completed: number;
  readonly finished_at: string | null;
}

/** Seconds from a mark to the ends of its runs; null without any. */
export interface Landing {
  readonly runs: number;
  readonly median: number | null;
  readonly p95: number | null;
  readonly last: number | null;
}

/** When the runs that completed have landed, counted from the mark. */
export function landingOf(runs: readonly MarkRun[], markAt: number): Landing {
  const seconds = runs.flatMap(({ status, finished_at }) =>
    status === 'Completed' && finished_at !== null ? [(Date.parse(finished_at) - markAt) / 1_000] : [],
  );
  if (seconds.length === 0) return { runs: 0, median: null, p95: null, last: null };
  const at = (share: number): number => rounded(percentileOf(seconds, share));
  return { runs: seconds.length, median: at(0.5), p95: at(0.95), last: at(1) };
}

/**
 * Sentences about exports whose rows did not land exactly once: no completed run or several, other rows, no manifest, no
 * file or several.
 * @param created the exports by id
 * @param runs all of the mark, also failed ones
 * @param keys those of all objects in the bucket
 */
export function findWrongRuns(
  created: ReadonlyMap<string, PlannedExport>,
  runs: readonly MarkRun[],
  keys: ReadonlySet<string>,
): readonly string[] {
  const filesOf = new Map<string, number>();
  for (const key of keys) {
    const prefix = key.split('/', 1)[0] ?? '';
    if (key.endsWith('.jsonl.gz')) filesOf.set(prefix, (filesOf.get(prefix) ?? 0) + 1);
  }
  const runsOf = Map.groupBy(runs, ({ batch_export_id }) => batch_export_id);
  return [...created].flatMap(([id, { name, rows }]) => {
    const [run, ...others] = runsOf.get(id) ?? [];
    if (run === undefined) return [`${name} has no run.`];
    if (others.length > 0) return [`${name} has ${String(others.length + 1)} runs.`];
    if (run.status !== 'Completed') return [`The run of ${name} is ${run.status}.`];
    const [files, expectedFiles] = [filesOf.get(name) ?? 0, rows > 0 ? 1 : 0];
    return [
      ...(run.records_completed === rows
        ? []
        : [`The run of ${name} has ${String(run.records_completed)} rows instead of ${String(rows)}.`]),
      ...(keys.has(run.manifest_key ?? '') ? [] : [`The run of ${name} has no manifest.`]),
      ...(files === expectedFiles
        ? []
        : [`The run of ${name} has ${String(files)} files instead of ${String(expectedFiles)}.`]),
    ];
  });
}

/** What a mark is checked for. */
interface MarkResult {
  readonly workers: number;
  readonly wrong_runs: readonly string[];
  /** Runs of the mark per second, divided by no-op workflows per second. */
  readonly ratio_to_noop: number | null;
  readonly memory: readonly { readonly peak_bytes: number | null }[];
}

const maxWorkerBytes = 600e6;
/** On 2026-11-29 two cores did 72 no-op workflows per second, and landed 35 runs of 3,000 exports: 0.49. */
const minRatioToNoop = 0.35;
/** Of fewer, the seconds before the first run and after the last one decide. */
const minExports = 500;

/** Sentences about what a measurement does not satisfy. */
export function findFailures(exports: number, measured: MarkResult): readonly string[] {
  const { workers, wrong_runs, ratio_to_noop, memory } = measured;
  const peak = Math.max(...memory.map(({ peak_bytes }) => peak_bytes ?? 0));
  const isSlow = exports >= minExports && (ratio_to_noop ?? 0) < minRatioToNoop;
  const found = [
    ...wrong_runs.slice(0, 10),
    ...(wrong_runs.length > 10 ? [`${String(wrong_runs.length)} runs in all are wrong.`] : []),
    ...(peak > maxWorkerBytes
      ? [`A worker had ${(peak / 1e6).toFixed(0)} MB, more than ${String(maxWorkerBytes / 1e6)}.`]
      : []),
    ...(isSlow
      ? [
          `The mark had ${String(ratio_to_noop)} of the rate of no-op workflows, less than ${String(minRatioToNoop)}.`,
        ]
      : []),
  ];
  return found.map((sentence) => `Workers ${String(workers)}: ${sentence}`);
}
