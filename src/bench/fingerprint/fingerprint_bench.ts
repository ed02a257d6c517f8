import { readSettings } from '../../config/settings.ts';
import { rowsOfFingerprint, type Fingerprint } from '../../domain/fingerprint.ts';
import { splitInterval } from '../../export/count.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import { readIdentity } from '../../local_stack/process_identity.ts';
import type { Report } from '../../local_stack/report.ts';
import { createSource } from '../../source/postgres_source.ts';
import { allRows } from '../../source/row_selection.ts';
import type { RowRange } from '../../source/source.ts';
import { createBenchAccount } from '../bench_account.ts';
import { insertEvents } from '../insert_events.ts';
import { usageOfTree } from '../process_usage.ts';
import { measureOnScratch, type ScratchOptions } from '../measure_on_scratch.ts';
import { medianOf, rounded, statisticsOf } from '../statistics.ts';
import type { FingerprintBenchResult, StatementResult } from './result.ts';

export interface FingerprintBenchOptions extends ScratchOptions {
  readonly events: number;
  readonly repeat: number;
}

/** An arbitrary hour in the past. */
const interval = { start: '2026-01-01T00:00:00.000Z', end: '2026-01-01T01:00:00.000Z' };
const ranges = 4;

interface Measured {
  readonly seconds: number;
  readonly cpu_seconds: number | null;
}

/**
 * Creates events of an hour in a scratch database and measures the fingerprint of the hour beside a count of its rows, in
 * turn. Deletes everything that it created.
 * @throws LaunchError when a server does not start or a result is wrong. @throws the reason of an aborted signal
 */
export async function runFingerprintBench(
  options: FingerprintBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<FingerprintBenchResult> {
  const { events, repeat } = options;
  return measureOnScratch(options, report, async ({ stack, pool }) => {
    const settings = readSettings({ DATABASE_URL: stack.databaseUrl });
    // One process for each statement. The planner would read a large count with several, and finish sooner on an idle machine.
    const sourceUrl = new URL(stack.databaseUrl);
    sourceUrl.searchParams.set('options', '-c max_parallel_workers_per_gather=0');
    const source = createSource({ sourceUrl: sourceUrl.href, settings });
    const server = readIdentity(stack.folder.inside('processes', 'postgresql.json'))?.pid;
    const cpuSeconds = (): number | null =>
      server === undefined ? null : (usageOfTree(server)?.cpu_seconds ?? null);

    async function measure<Result>(
      name: string,
      work: () => Promise<Result>,
    ): Promise<Measured & { result: Result }> {
      const [before, start] = [cpuSeconds(), performance.now()];
      const result = await work();
      const seconds = (performance.now() - start) / 1_000;
      const after = cpuSeconds();
      const cpu_seconds = before === null || after === null ? null : after - before;
      report(
        `${name}: ${seconds.toFixed(3)} s${cpu_seconds === null ? '' : `, ${cpu_seconds.toFixed(2)} s CPU`}`,
      );
      return { seconds, cpu_seconds, result };
    }

    try {
      const { teamId } = await createBenchAccount(pool);
      const data = { teamId, start: new Date(interval.start), count: events };
      await insertEvents(stack.databaseUrl, data, report, signal);
      const range: RowRange = { model: 'events', team_id: teamId, interval, selection: allRows };
      const rowsPerRange = Math.ceil(events / ranges);
      const counted: Measured[] = [];
      const fingerprinted: Measured[] = [];
      const cut: Measured[] = [];
      const numbered: Measured[] = [];
      // Not timed. It fills the caches.
      await source.countRows(range, signal);
      for (let round = 0; round < repeat; round += 1) {
        let fingerprint: Fingerprint | undefined;
        const count = async () => counted.push(await measure('Count', () => source.countRows(range, signal)));
        const read = async () => {
          const measured = await measure('Fingerprint', () => source.fingerprint(range, signal));
          fingerprint = measured.result;
          fingerprinted.push(measured);
        };
        for (const step of round % 2 === 0 ? [count, read] : [read, count]) await step();
        const rows = fingerprint;
        if (!rows || rowsOfFingerprint(rows) !== events)
          throw new LaunchError(`The fingerprint does not have ${events} rows.`);
        cut.push(
          await measure('Cut', () =>
            splitInterval(source, range, rows, { rows: rowsPerRange, splitsBuckets: true }, signal),
          ),
        );
        numbered.push(await measure('Numbering', () => source.splitKeys(range, rowsPerRange, signal)));
      }
      return {
        events,
        repeat,
        count: statementResult(counted),
        fingerprint: statementResult(fingerprinted),
        ratio: {
          seconds: medianRatio(fingerprinted, counted, ({ seconds }) => seconds) ?? Number.NaN,
          cpu_seconds: medianRatio(fingerprinted, counted, ({ cpu_seconds }) => cpu_seconds),
        },
        cut: statisticsOf(cut.map(({ seconds }) => seconds)),
        numbering: statementResult(numbered),
      };
    } finally {
      await source.close();
    }
  });
}

function statementResult(measured: readonly Measured[]): StatementResult {
  const cpu = measured.flatMap(({ cpu_seconds }) => cpu_seconds ?? []);
  return {
    seconds: statisticsOf(measured.map(({ seconds }) => seconds)),
    cpu_seconds: cpu.length === 0 ? null : statisticsOf(cpu),
  };
}

/** The median of the ratios within each repeat, which ignores slow repeats; null without values. */
function medianRatio(
  numerators: readonly Measured[],
  denominators: readonly Measured[],
  valueOf: (measured: Measured) => number | null,
): number | null {
  const ratios = numerators.flatMap((measured, round) => {
    const other = denominators[round];
    const [one, two] = [valueOf(measured), other ? valueOf(other) : null];
    return one === null || two === null || two === 0 ? [] : [one / two];
  });
  return ratios.length === 0 ? null : rounded(medianOf(ratios));
}
