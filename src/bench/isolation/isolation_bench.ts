import type { Report } from '../../local_stack/report.ts';
import { createBenchAccount, type BenchAccount } from '../bench_account.ts';
import { exportdEnvironment } from '../exportd_environment.ts';
import { insertEvents } from '../insert_events.ts';
import { withExportd } from '../schedule/with_exportd.ts';
import { measureOnScratch, type ScratchOptions } from '../measure_on_scratch.ts';
import { rounded, statisticsOf } from '../statistics.ts';
import { startOfHour } from '../start_of_hour.ts';
import { exportHours, type IsolationBench } from './healthy_export.ts';
import type { HealthyExports, IsolationBenchResult } from './result.ts';
import { startSilentExports } from './silent_exports.ts';
import { startSilentServer } from './silent_server.ts';

export interface IsolationBenchOptions extends ScratchOptions {
  /** Rows of an hour of the healthy export. */
  readonly events: number;
  /** Hours that are exported in each situation. */
  readonly repeat: number;
  /** Projects with a silent bucket, and runs of each. */
  readonly projects: number;
  readonly runs: number;
}

/** Rows per hour and project of the exports to silent buckets, so that each of their runs has something to send. */
const silentRowsPerHour = 10;
const hourMs = 3_600_000;

/**
 * Exports hours of one export alone, and beside the runs of projects whose buckets never respond. Deletes everything that
 * it created.
 * @throws LaunchError when a process exits or a run of the healthy export does not complete. @throws the reason of an
 * aborted signal
 */
export async function runIsolationBench(
  options: IsolationBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<IsolationBenchResult> {
  const { events, repeat, projects, runs } = options;
  return measureOnScratch(options, report, async ({ stack, pool }) => {
    const silent = await startSilentServer();
    try {
      const { baseUrl, environment } = await exportdEnvironment(stack, 'isolation');
      const bench: IsolationBench = { stack, pool, baseUrl, silentEndpoint: silent.endpoint, signal };
      const healthy = await createBenchAccount(pool, 'Healthy');
      const owners: BenchAccount[] = [];
      for (let number = 1; number <= projects; number += 1)
        owners.push(await createBenchAccount(pool, `Silent-${String(number)}`));
      const end = startOfHour();
      const hours = 3 * repeat;
      const insert = (teamId: number, rows: { count: number; hours: number; projects?: number }) =>
        insertEvents(
          stack.databaseUrl,
          { teamId, start: new Date(end - rows.hours * hourMs), ...rows },
          report,
          signal,
        );
      await insert(healthy.teamId, { count: events * hours, hours });
      // Their ids are consecutive.
      await insert(owners[0]?.teamId ?? 0, {
        count: silentRowsPerHour * runs * projects,
        hours: runs,
        projects,
      });
      const settings = {
        EXPORTD_SETTLE_DELAY: '0s',
        EXPORTD_BACKFILL_CONCURRENCY: String(runs),
      };
      const measured = await withExportd(
        { stack, baseUrl, environment, profileFolder: undefined },
        settings,
        async () => {
          const firstHour = end - hours * hourMs;
          const exportNext = (position: number) =>
            exportHours(bench, healthy, { start: firstHour + position * repeat * hourMs, count: repeat });
          const alone = statisticsOf(await exportNext(0));
          report(`Alone: ${alone.median.toFixed(3)} s`);
          const beside = async (position: number, name: string): Promise<HealthyExports> => {
            const seconds = statisticsOf(await exportNext(position));
            const ratio = rounded(seconds.median / alone.median);
            report(`${name}: ${seconds.median.toFixed(3)} s, ${ratio.toFixed(2)} times as long`);
            return { seconds, ratio };
          };
          const silentExports = await startSilentExports(bench, owners, { runs, end });
          const while_starting = await beside(1, 'While the runs of silent buckets start');
          await silentExports.allWait();
          const while_waiting = await beside(2, 'While all of them wait');
          const deletion_seconds = rounded(await silentExports.delete());
          return { alone, while_starting, while_waiting, deletion_seconds };
        },
      );
      return {
        events,
        repeat,
        projects,
        runs,
        ...measured,
      };
    } finally {
      await silent.close();
    }
  });
}
