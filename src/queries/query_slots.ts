import { createKeyedSemaphore, type Waiter } from '../concurrency/keyed_semaphore.ts';
import type { Settings } from '../config/settings.ts';
import { type BusyScope, QuerySlotsBusy } from './query_errors.ts';

/** Who a query runs for. */
export interface SlotOwner {
  readonly team_id: number;
  /** The API key of the request; null in the background. */
  readonly key_id: string | null;
}

/** The slots of a process. A query runs while it has one. */
export interface QuerySlots {
  /**
   * Waits for a slot.
   * @param onLimited called once if the query waits although slots are free, because none of them is for it
   * @returns a function that releases the slot, once
   * @throws QuerySlotsBusy, the reason of the signal
   */
  acquire(owner: SlotOwner, signal: AbortSignal, onLimited?: () => void): Promise<() => void>;
}

/** Numbers of slots, and how many queries may wait for one, and how long. */
export interface SlotLimits {
  readonly slots: number;
  readonly projectSlots: number;
  readonly keySlots: number;
  readonly queueSize: number;
  readonly projectQueueSize: number;
  /** Milliseconds. */
  readonly timeoutMs: number;
}

type SlotSettings = Pick<
  Settings,
  | 'EXPORTD_QUERY_SLOTS'
  | 'EXPORTD_QUERY_PROJECT_SLOTS'
  | 'EXPORTD_QUERY_KEY_SLOTS'
  | 'EXPORTD_QUERY_PROJECT_QUEUE_SIZE'
  | 'EXPORTD_QUERY_QUEUE_TIMEOUT'
>;

/** Queries that wait for a slot of a server process. With more, the project with the longest queue gets 503. */
const maxWaitingQueries = 200;

/** How long a background query waits on a worker for a slot of its project before it fails, in milliseconds. */
export const backgroundQueueTimeoutMs = 3_600_000;

/** The limits of a server process, whose clients wait. */
export const foregroundLimits = (settings: SlotSettings): SlotLimits => ({
  slots: settings.EXPORTD_QUERY_SLOTS,
  projectSlots: settings.EXPORTD_QUERY_PROJECT_SLOTS,
  keySlots: settings.EXPORTD_QUERY_KEY_SLOTS,
  queueSize: maxWaitingQueries,
  projectQueueSize: settings.EXPORTD_QUERY_PROJECT_QUEUE_SIZE,
  timeoutMs: settings.EXPORTD_QUERY_QUEUE_TIMEOUT,
});

/**
 * The limits of a worker. It does not tell keys apart, and must run every query that it receives, so its queue has no
 * limit.
 */
export const backgroundLimits = (settings: SlotSettings): SlotLimits => ({
  slots: settings.EXPORTD_QUERY_SLOTS,
  projectSlots: settings.EXPORTD_QUERY_PROJECT_SLOTS,
  keySlots: Infinity,
  queueSize: Infinity,
  projectQueueSize: Infinity,
  timeoutMs: backgroundQueueTimeoutMs,
});

/** The duration of a query before any has ended, in milliseconds. */
const assumedDurationMs = 5_000;
/** Bounds of `Retry-After`, in seconds. */
const minRetrySeconds = 1;
const maxRetrySeconds = 60;

type WaitingQuery = Waiter<number, string | null>;

/**
 * Creates slots that projects, and the API keys of each project, share fairly. The last free slot is kept for a project
 * that runs nothing. When a queue is full, the newest query of the project, or of the key, that has the most queries in
 * it must leave.
 *
 * @param now a clock in milliseconds, for tests
 */
export function createQuerySlots(given: SlotLimits, now = () => performance.now()): QuerySlots {
  const limits = effectiveLimits(given);
  const permits = createKeyedSemaphore<number, string | null>(
    {
      total: limits.slots,
      perKey: limits.projectSlots,
      perMember: limits.keySlots,
      keepsLast: true,
    },
    now,
  );
  /** A moving average. */
  let durationMs = assumedDurationMs;

  const waitingOf = (teamId: number): readonly WaitingQuery[] =>
    [...permits.waiting].filter(({ key }) => key === teamId);

  /** The limit of its project or of its API key that a query waits for; undefined if it waits for those of the process. */
  const exceededScope = (teamId: number, keyId: string | null | undefined): BusyScope | undefined => {
    const exceeded = permits.exceeded(teamId, keyId ?? null);
    return exceeded && ({ member: 'key', key: 'project' } as const)[exceeded];
  };

  /** The error of a query that has left the queue. `Retry-After` is when that has probably been served. */
  const busy = (teamId: number, scope: BusyScope): QuerySlotsBusy => {
    const queued = (scope === 'process' ? [...permits.waiting] : waitingOf(teamId)).length;
    const slots = { key: limits.keySlots, project: limits.projectSlots, process: limits.slots }[scope];
    const seconds = Math.ceil((durationMs * (queued + 1)) / slots / 1_000);
    return new QuerySlotsBusy(scope, slots, Math.min(maxRetrySeconds, Math.max(minRetrySeconds, seconds)));
  };

  const shortenQueues = (teamId: number): void => {
    const ofProject = waitingOf(teamId);
    const newest = ofProject.length > limits.projectQueueSize ? newestOfLongest(ofProject) : undefined;
    newest?.reject(() => busy(teamId, exceededScope(teamId, newest.member) ?? 'project'));
    const all = [...permits.waiting];
    if (all.length <= limits.queueSize) return;
    const last = newestOfLongest(longestGroup(all, ({ key }) => key));
    last?.reject(() => busy(last.key, 'process'));
  };

  return {
    async acquire({ team_id, key_id }, signal, onLimited) {
      const acquiring = permits.acquire(team_id, {
        member: key_id,
        signal,
        timeout: {
          ms: limits.timeoutMs,
          error: () => busy(team_id, exceededScope(team_id, key_id) ?? 'process'),
        },
        ...(onLimited && { onLimited }),
      });
      shortenQueues(team_id);
      const release = await acquiring;
      const startedAt = now();
      let isRunning = true;
      return () => {
        if (isRunning) durationMs += (now() - startedAt - durationMs) / 4;
        isRunning = false;
        release();
      };
    },
  };
}

/** The newest query of the API key that has the most in the queue. */
const newestOfLongest = (queue: readonly WaitingQuery[]): WaitingQuery | undefined =>
  longestGroup(queue, ({ member }) => member).at(-1);

function longestGroup<Item>(items: readonly Item[], keyOf: (item: Item) => unknown): readonly Item[] {
  const groups = [...Map.groupBy(items, keyOf).values()];
  return groups.sort((one, other) => other.length - one.length)[0] ?? [];
}

/** No project can use the last slot, unless it is the only one, and no key more than its project. */
function effectiveLimits(limits: SlotLimits): SlotLimits {
  const projectSlots = Math.min(limits.projectSlots, Math.max(1, limits.slots - 1));
  return { ...limits, projectSlots, keySlots: Math.min(limits.keySlots, projectSlots) };
}
