import { workflowIds, type RunInterval } from '../../contract/workflow_ids.ts';
import { forEachConcurrently } from '../../temporal/concurrency.ts';
import { readEvents } from '../schedule/histories.ts';
import { hoursAfter, ofHours, type ExportHours } from './backfill.ts';
import type { WorkersScratch } from './workers_scratch.ts';

const maxConcurrentRequests = 8;

/** Counts how many activities of a type each worker ran for some hours, from the histories of their runs. */
export async function activitiesPerWorker(
  { client, pool, settings, workerPids }: WorkersScratch,
  { exportIds, start, hours }: ExportHours,
  activityType: string,
): Promise<number[]> {
  const { rows } = await pool.query<RunInterval>(
    `select batch_export_id, data_interval_start, data_interval_end from exportd.batch_export_runs
     where ${ofHours}`,
    [exportIds, start, hoursAfter(start, hours)],
  );
  const counts = new Map(workerPids.map((pid) => [pid, 0]));
  const ids = workflowIds(settings);
  await forEachConcurrently(rows, maxConcurrentRequests, async (run) => {
    const scheduled = new Set<string>();
    for (const event of await readEvents(client, { workflowId: ids.run(run) })) {
      const { activityTaskScheduledEventAttributes: task, activityTaskStartedEventAttributes: started } =
        event;
      if (task?.activityType?.name === activityType) scheduled.add(String(event.eventId));
      if (!started || !scheduled.has(String(started.scheduledEventId))) continue;
      // Identities are `<pid>@<host>`.
      const pid = Number.parseInt(started.identity ?? '', 10);
      counts.set(pid, (counts.get(pid) ?? 0) + 1);
    }
  });
  return workerPids.map((pid) => counts.get(pid) ?? 0);
}
