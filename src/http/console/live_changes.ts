import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Authentication, Credential } from '../authentication.ts';

/** What was recorded in a project since the last message. */
export interface LiveChange {
  readonly batch_export_ids: readonly string[];
  readonly run_ids: readonly string[];
  readonly backfill_ids: readonly string[];
}

/** Notifies clients of new events of the journal. */
export interface LiveChanges {
  /**
   * Calls `listener` with the changes of a project; returns how to stop. `onEnd` is called when the credential is no longer
   * valid, and when the server closes.
   */
  subscribe(credential: Credential, listener: (change: LiveChange) => void, onEnd: () => void): () => void;
  /** Ends every subscription. */
  close(): Promise<void>;
}

interface Subscription extends Credential {
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
  {
    pollMs,
    logger,
    authentication,
  }: {
    readonly pollMs: number;
    readonly logger: Logger;
    readonly authentication: Pick<Authentication, 'findEnded'>;
  },
): LiveChanges {
  const subscriptions = new Set<Subscription>();
  const closing = new AbortController();
  let polling: Promise<void> | undefined;
  const isWanted = (): boolean => subscriptions.size > 0 && !closing.signal.aborted;

  const wait = (ms: number): Promise<void> =>
    sleep(ms, undefined, { signal: closing.signal }).catch(() => undefined);
  const poll = async (): Promise<void> => {
    const reader = createReader(pool);
    while (isWanted())
      try {
        const changed = await reader.readNew();
        for (const ended of await authentication.findEnded([...subscriptions])) {
          subscriptions.delete(ended);
          ended.onEnd();
        }
        notify(subscriptions, changed);
        await wait(pollMs);
      } catch (error) {
        logger.warn({ err: error }, 'Could not read new events for the console. Retrying.');
        await wait(pollMs * 5);
      }
    polling = undefined;
  };

  return {
    subscribe: ({ key_id, project_id, session_id }, listener, onEnd) => {
      const subscription = { key_id, project_id, session_id, listener, onEnd };
      if (closing.signal.aborted) {
        onEnd();
        return () => undefined;
      }
      subscriptions.add(subscription);
      polling ??= poll();
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

/** Reads the events since its first call, each once. After a failed call the next one reads what that one missed. */
function createReader(pool: Pool): { readNew(): Promise<ChangedStream[]> } {
  /** The newest position that was read; undefined before the first call. */
  let newest: number | undefined;
  let seen = new Set<number>();
  const readAfter = async (position: number): Promise<ChangedStream[]> => {
    const { rows } = await pool.query<ChangedStream>({
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
      values: [position],
    });
    return rows;
  };
  return {
    readNew: async () => {
      const from = newest ?? (await readNewestPosition(pool));
      const found = await readAfter(from - overlap);
      const isNew: (event: ChangedStream) => boolean =
        newest === undefined ? ({ position }) => position > from : ({ position }) => !seen.has(position);
      const fresh = found.filter(isNew);
      const last = Math.max(from, found.at(-1)?.position ?? 0);
      newest = last;
      seen = new Set(found.flatMap(({ position }) => (position > last - overlap ? [position] : [])));
      return fresh;
    },
  };
}

async function readNewestPosition(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ position: number }>(
    'select coalesce(max(global_position), 0) as position from exportd.journal_events',
  );
  return rows[0]?.position ?? 0;
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
      if (subscription.project_id === teamId) subscription.listener(change);
  }
}
