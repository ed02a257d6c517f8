import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';

/** What was recorded in a project since the last message. */
export interface LiveChange {
  readonly batch_export_ids: readonly string[];
  readonly run_ids: readonly string[];
  readonly backfill_ids: readonly string[];
}

/** Notifies clients of new events of the journal. */
export interface LiveChanges {
  /** Calls `listener` with the changes of a project; returns how to stop. `onEnd` is called when the server closes. */
  subscribe(teamId: number, listener: (change: LiveChange) => void, onEnd: () => void): () => void;
  /** Ends every subscription. */
  close(): Promise<void>;
}

interface Subscription {
  readonly teamId: number;
  readonly listener: (change: LiveChange) => void;
  readonly onEnd: () => void;
}

interface ChangedStream {
  readonly position: number;
  readonly stream_type: 'batch_export' | 'run' | 'backfill';
  readonly stream_id: string;
  readonly batch_export_id: string | null;
  readonly team_id: number | null;
}

/** Events can be committed after events of a higher position: this many positions are read again. */
const overlap = 500;
/** What a burst leaves out is read by the next poll. */
const maxEvents = 5_000;

/**
 * Polls the journal with one statement per `pollMs` while anybody is subscribed, for any number of clients. No LISTEN, so
 * that appends send no notifications and a pooler changes nothing.
 */
export function createLiveChanges(
  pool: Pool,
  { pollMs, logger }: { readonly pollMs: number; readonly logger: Logger },
): LiveChanges {
  const subscriptions = new Set<Subscription>();
  const closing = new AbortController();
  let polling: Promise<void> | undefined;
  const isWanted = (): boolean => subscriptions.size > 0 && !closing.signal.aborted;

  const poll = async (): Promise<void> => {
    const reader = await createReader(pool);
    while (isWanted()) {
      await sleep(pollMs, undefined, { signal: closing.signal }).catch(() => undefined);
      if (isWanted()) notify(subscriptions, await reader.readNew());
    }
  };
  const keepPolling = async (): Promise<void> => {
    while (isWanted())
      await poll().catch(async (error: unknown) => {
        logger.warn({ err: error }, 'Could not read new events for the console. Retrying.');
        await sleep(pollMs * 5, undefined, { signal: closing.signal }).catch(() => undefined);
      });
    polling = undefined;
  };

  return {
    subscribe: (teamId, listener, onEnd) => {
      const subscription = { teamId, listener, onEnd };
      subscriptions.add(subscription);
      polling ??= keepPolling();
      return () => subscriptions.delete(subscription);
    },
    close: async () => {
      closing.abort();
      for (const { onEnd } of subscriptions) onEnd();
      subscriptions.clear();
      await polling;
    },
  };
}

/** Reads the events since it was created, each once. */
async function createReader(pool: Pool): Promise<{ readNew(): Promise<ChangedStream[]> }> {
  const { rows } = await pool.query<{ position: number }>(
    'select coalesce(max(global_position), 0) as position from exportd.journal_events',
  );
  let newest = rows[0]?.position ?? 0;
  const started = newest;
  let seen = new Set<number>();
  return {
    readNew: async () => {
      const from = Math.max(started, newest - overlap);
      const found = await pool.query<ChangedStream>({
        name: 'console-live-changes',
        text: `select event.global_position as position, event.stream_type, event.stream_id,
            coalesce(export.id, run.batch_export_id, backfill.batch_export_id) as batch_export_id,
            coalesce(export.team_id, run.team_id, backfill.team_id) as team_id
          from exportd.journal_events event
          left join exportd.batch_exports export
            on event.stream_type = 'batch_export' and export.id = event.stream_id
          left join exportd.batch_export_runs run on event.stream_type = 'run' and run.id = event.stream_id
          left join exportd.backfills backfill
            on event.stream_type = 'backfill' and backfill.id = event.stream_id
          where event.global_position > $1 order by event.global_position limit ${maxEvents}`,
        values: [from],
      });
      const fresh = found.rows.filter(({ position }) => !seen.has(position));
      newest = Math.max(newest, ...found.rows.slice(-1).map(({ position }) => position));
      seen = new Set(found.rows.flatMap(({ position }) => (position > newest - overlap ? [position] : [])));
      return fresh;
    },
  };
}

function notify(subscriptions: ReadonlySet<Subscription>, changed: readonly ChangedStream[]): void {
  for (const [teamId, streams] of Map.groupBy(changed, ({ team_id }) => team_id)) {
    const idsOf = (type: ChangedStream['stream_type']) => [
      ...new Set(streams.flatMap(({ stream_type, stream_id }) => (stream_type === type ? [stream_id] : []))),
    ];
    const change: LiveChange = {
      batch_export_ids: [...new Set(streams.flatMap(({ batch_export_id }) => batch_export_id ?? []))],
      run_ids: idsOf('run'),
      backfill_ids: idsOf('backfill'),
    };
    for (const subscription of subscriptions)
      if (subscription.teamId === teamId) subscription.listener(change);
  }
}
