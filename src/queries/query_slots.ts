import { createProjectSlots, type ProjectSlots, type SlotOwner, type SlotWaiter } from './project_slots.ts';
import { QuerySlotsBusy, type BusyScope } from './query_errors.ts';
import type { SlotLimits } from './slot_limits.ts';

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

/** The duration of a query before any has ended, in milliseconds. */
const assumedDurationMs = 5_000;
/** Bounds of `Retry-After`, in seconds. */
const minRetrySeconds = 1;
const maxRetrySeconds = 60;

/**
 * Creates slots that projects share:
 *
 * - The last free slot is kept for a project that runs nothing, so that no project alone makes another wait.
 * - A slot goes to the project that runs the fewest queries, and among those to the one that has used slots the least.
 * - When a queue is full, the newest query of the project, or of the key, that has the most queries in it must leave.
 *
 * @param now a clock in milliseconds, for tests
 */
export function createQuerySlots(given: SlotLimits, now = () => performance.now()): QuerySlots {
  const limits = effectiveLimits(given);
  const projects = new Map<number, ProjectSlots>();
  let running = 0;
  let waiting = 0;
  /** A moving average. */
  let durationMs = assumedDurationMs;

  const projectOf = (teamId: number): ProjectSlots => {
    const project = projects.get(teamId) ?? createProjectSlots(limits, now);
    projects.set(teamId, project);
    return project;
  };

  const mayStart = (project: ProjectSlots): boolean =>
    limits.slots - running > (project.running === 0 ? 0 : 1) && project.next() !== undefined;

  const leaveQueue = (waiter: SlotWaiter): void => {
    if (projects.get(waiter.owner.team_id)?.remove(waiter)) waiting -= 1;
  };

  const grantFreeSlots = (): void => {
    for (;;) {
      const [project] = [...projects.values()].filter(mayStart).sort(byUse);
      const waiter = project?.next();
      if (!project || !waiter) break;
      leaveQueue(waiter);
      project.start(waiter.owner.key_id);
      running += 1;
      waiter.grant();
    }
    for (const [teamId, project] of projects) {
      if (running < limits.slots) for (const waiter of project.waiting) waiter.limited();
      if (project.isIdle()) projects.delete(teamId);
    }
  };

  /** Rejects a waiting query. `Retry-After` is when the queue that it leaves has probably been served. */
  const reject = (waiter: SlotWaiter, scope: BusyScope): void => {
    leaveQueue(waiter);
    const queued = scope === 'process' ? waiting : projectOf(waiter.owner.team_id).waiting.size;
    const slots = slotsOf(limits, scope);
    const seconds = Math.ceil((durationMs * (queued + 1)) / slots / 1_000);
    waiter.reject(
      new QuerySlotsBusy(scope, slots, Math.min(maxRetrySeconds, Math.max(minRetrySeconds, seconds))),
    );
  };

  const shortenQueues = (project: ProjectSlots): void => {
    const newest = project.waiting.size > limits.projectQueueSize ? project.newestOfLongest() : undefined;
    if (newest) reject(newest, project.exceeded(newest.owner.key_id) ?? 'project');
    if (waiting <= limits.queueSize) return;
    const [longest] = [...projects.values()].sort((one, other) => other.waiting.size - one.waiting.size);
    const last = longest?.newestOfLongest();
    if (last) reject(last, 'process');
  };

  const releaseOnce = ({ team_id, key_id }: SlotOwner): (() => void) => {
    const startedAt = now();
    let released = false;
    return () => {
      if (released) return;
      released = true;
      running -= 1;
      projectOf(team_id).end(key_id, now() - startedAt);
      durationMs += (now() - startedAt - durationMs) / 4;
      grantFreeSlots();
    };
  };

  return {
    async acquire(owner, signal, onLimited) {
      signal.throwIfAborted();
      const granted = Promise.withResolvers<undefined>();
      let reportLimited = onLimited;
      const waiter: SlotWaiter = {
        owner,
        grant: () => granted.resolve(undefined),
        reject: granted.reject,
        limited: () => {
          reportLimited?.();
          reportLimited = undefined;
        },
      };
      const project = projectOf(owner.team_id);
      const abort = (): void => {
        leaveQueue(waiter);
        granted.reject(signal.reason);
      };
      const timer = setTimeout(
        () => reject(waiter, project.exceeded(owner.key_id) ?? 'process'),
        limits.timeoutMs,
      );
      signal.addEventListener('abort', abort);
      project.add(waiter);
      waiting += 1;
      grantFreeSlots();
      shortenQueues(project);
      try {
        await granted.promise;
        return releaseOnce(owner);
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
      }
    },
  };
}

const byUse = (one: ProjectSlots, other: ProjectSlots): number =>
  one.running - other.running || one.usedMs() - other.usedMs();

/** No project can use the last slot, unless it is the only one, and no key more than its project. */
function effectiveLimits(limits: SlotLimits): SlotLimits {
  const projectSlots = Math.min(limits.projectSlots, Math.max(1, limits.slots - 1));
  return { ...limits, projectSlots, keySlots: Math.min(limits.keySlots, projectSlots) };
}

const slotsOf = (limits: SlotLimits, scope: BusyScope): number =>
  ({ key: limits.keySlots, project: limits.projectSlots, process: limits.slots })[scope];
